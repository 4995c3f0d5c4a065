"""`python -m flowcompute`: the command, where it is not on the path."""

import sys

from flowcompute.cli import main

sys.exit(main())
