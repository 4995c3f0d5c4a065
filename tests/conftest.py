"""How many cases property tests draw: few and always the same ones in CI, thousands with HYPOTHESIS_PROFILE=full."""

import os

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("full", deadline=None, max_examples=5000, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
