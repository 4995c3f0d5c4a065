"""Command that removes unfinished results which dead processes have left behind."""

from __future__ import annotations

import argparse
import os
from typing import Any

from flowcompute.checkpoint.store import CheckpointFolder, absolute_path
from flowcompute.cli.overview import COMMANDS
from flowcompute.errors import CheckpointError, DestinationError
from flowcompute.files import explain, find_drafts, remove_draft, shown
from flowcompute.runtime.checkpoints import draft_token


def add_clean(commands: Any) -> None:
    """Add `clean` to a parser's sub-parsers."""
    parser = commands.add_parser("clean", help=COMMANDS["clean"])
    parser.add_argument("folder", metavar="FOLDER", help="where the results were to be; folders in it stay as they are")
    parser.add_argument("--dry-run", action="store_true", help="only list them")
    parser.add_argument(
        "--given-up",
        metavar="CHECKPOINT",
        help="also those of the job that was kept there, whose folder you have removed",
    )
    parser.set_defaults(act=_clean)


def _clean(options: argparse.Namespace) -> None:
    token = None
    if options.given_up is not None:
        path = absolute_path(options.given_up)
        if CheckpointFolder.exists(path):
            raise CheckpointError(
                f"cannot give up the job in {shown(path)}: its checkpoint is there",
                hint=f"remove {shown(path)} first; after that nothing goes on with it",
            )
        token = draft_token(path)
    try:
        for draft in find_drafts(options.folder, token):
            done = "" if options.dry_run or not remove_draft(draft) else ", removed"
            print(f"{shown(os.path.normpath(draft.path))}: {draft.size:,} bytes, {draft.fate}{done}")
    except OSError as error:
        text, hint = explain(error)
        raise DestinationError(f"cannot clean {shown(options.folder)}: {text}", hint=hint) from error
