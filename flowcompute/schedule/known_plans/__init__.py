"""Plans that were made before, by this process or by others."""

from flowcompute.schedule.known_plans.plan_cache import PlanCache, bound, plan_key
from flowcompute.schedule.known_plans.plan_store import KeptPlans

__all__ = ["KeptPlans", "PlanCache", "bound", "plan_key"]
