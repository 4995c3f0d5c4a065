"""Commands about strategies: find one, and show, export, import and clear the stored ones."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any, Literal

from flowcompute.cli.named_job import JOB_HELP, job_name, load_job
from flowcompute.cli.output import write_text
from flowcompute.cli.overview import COMMANDS
from flowcompute.cli.running import add_precision, add_run_options, options_of
from flowcompute.errors import PlanError
from flowcompute.files import FILES, explain
from flowcompute.flow import tune_ahead
from flowcompute.strategy import Stored, StrategyStore, TuneOptions, export_strategies, read_exported


def add_strategies(commands: Any) -> None:
    """Add `tune`, and `strategies` with its own commands, to a parser's sub-parsers."""
    tune = commands.add_parser("tune", help=COMMANDS["tune"])
    tune.add_argument("job", type=job_name, metavar="MODULE:JOB", help=JOB_HELP)
    tune.add_argument("--quick", action="store_true", help="in 10 s instead of two minutes")
    add_run_options(tune)
    add_precision(tune)
    tune.set_defaults(act=_tune)

    parser = commands.add_parser("strategies", help=COMMANDS["strategies"])
    own = parser.add_subparsers(metavar="show|export|import|clear")

    show = own.add_parser("show", help="what is kept, the latest first")
    show.add_argument("--trials", action="store_true", help="also what was tried")
    show.set_defaults(act=_show)

    export = own.add_parser("export", help="write all of it into one file, for another machine")
    export.add_argument("file", metavar="FILE")
    export.set_defaults(act=_export)

    importing = own.add_parser("import", help="take over what was exported; what is kept here and newer stays")
    importing.add_argument("file", metavar="FILE")
    importing.set_defaults(act=_import)

    clear = own.add_parser("clear", help="forget all of it")
    clear.set_defaults(act=_clear)


def _store() -> StrategyStore:
    store = StrategyStore()
    if store.folder is None:
        raise PlanError(f"cannot keep strategies: {store.reason}", element="strategies", hint="set FLOWCOMPUTE_CACHE")
    return store


def _tune(options: argparse.Namespace) -> None:
    tune: Literal["quick", "full"] = "quick" if options.quick else "full"
    job = load_job(options.job)
    strategy, tuning = tune_ahead(*job, tune=tune, **options_of(options, TuneOptions))
    print(f"{tuning}\n{strategy}")


def _show(options: argparse.Namespace) -> None:
    store = _store()
    found = store.every()
    print(f"{len(found)} in {store.folder}")
    for one in found:
        print(f"\n{_described(one)}")
        if options.trials:
            print("\n".join(f"  {trial}" for trial in one.tuning.tried))


def _described(one: Stored) -> str:
    when = dt.datetime.fromtimestamp(one.when, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    key = one.key
    return "\n".join(
        [
            f"{key.kind} {key.what[:12]}: {one.about}",
            f"  on {key.device}, {key.size}, flowcompute {key.version}, {when}",
            f"  {one.strategy}",
            f"  saves {100 * one.tuning.gain:.1f} % of the default's time, found by {one.tuning.trials} trials",
        ]
    )


def _export(options: argparse.Namespace) -> None:
    found = _store().every()
    write_text(options.file, export_strategies(found))
    print(f"{len(found)} strategies in {options.file}")


def _import(options: argparse.Namespace) -> None:
    try:
        given = read_exported(FILES.read_bytes(options.file))
    except OSError as error:
        said, hint = explain(error)
        raise PlanError(f"cannot read {options.file}: {said}", element="strategies", hint=hint) from error
    store = _store()
    taken = 0
    for one in given:
        own = store.load(one.key)
        if own is None or own.when < one.when:
            taken += store.save(one)
    print(f"{taken} of {len(given)} strategies taken over")


def _clear(_options: argparse.Namespace) -> None:
    print(f"{_store().clear()} strategies forgotten")
