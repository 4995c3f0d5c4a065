"""The store: what is kept comes back, whole, whoever else writes; the command shows, ships and forgets it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from flowcompute.cli.command import main
from flowcompute.errors import PlanError
from flowcompute.strategy import strategy_store as room
from flowcompute.strategy.strategy import Strategy
from flowcompute.strategy.strategy_store import Key, Stored, StrategyStore, read_exported
from flowcompute.strategy.trial import Trial, Tuning

KEY = Key("job", "0123456789abcdef0123", "PoCL | 3.0 | a CPU", "2^20 records")
TUNING = Tuning("tuned", 3, 0.5, 0.125, (Trial("k0", "unroll=4", 0.125, 0.01, 6, "kept"),), ("a note",))
STORED = Stored(KEY, "exp of x", Strategy(depth=3, kernels={"k0": {"unroll": 4}}), TUNING, 1_700_000_000)

HAMMER = """
import dataclasses, sys
from tests.strategy.test_store import KEY, STORED, StrategyStore, Strategy
store, own = StrategyStore(), int(sys.argv[1])
for turn in range(20):
    assert store.save(dataclasses.replace(STORED, strategy=Strategy(depth=own, batch_bytes=own), about="x" * 500 * own))
    found = store.load(KEY)
    assert found.strategy.depth == found.strategy.batch_bytes and len(found.about) == 500 * found.strategy.depth
    assert len(store.every()) == 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process keeps strategies."""
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "strategies"


def test_what_is_kept_comes_back(folder):
    assert StrategyStore().load(KEY) is None
    assert StrategyStore().save(STORED)
    assert StrategyStore().load(KEY) == STORED
    (file,) = folder.iterdir()
    assert json.loads(file.read_text())["strategy"] == {"depth": 3, "kernels": {"k0": {"unroll": 4}}}


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(Key)])
def test_each_part_of_a_key_counts(folder, part):
    store = StrategyStore()
    store.save(STORED)
    other = dataclasses.replace(KEY, **{part: "kernel" if part == "kind" else "another"})
    assert store.load(other) is None
    store.save(dataclasses.replace(STORED, key=other, strategy=Strategy(depth=9)))
    assert store.load(KEY) == STORED
    assert len(store.every()) == 2


def test_the_folder_is_found_when_it_is_used(folder, tmp_path, monkeypatch):
    StrategyStore().save(STORED)
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "elsewhere"))
    assert StrategyStore().load(KEY) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 99}',
        "\x00" * 9,
        json.dumps({**STORED.plain(), "strategy": {"unroll": 3}}),
    ]
    + [json.dumps({**STORED.plain(), name: None}) for name in ("kind", "what", "when", "tuning", "strategy")],
)
def test_what_is_damaged_counts_as_missing(folder, text):
    store = StrategyStore()
    store.save(STORED)
    (file,) = folder.iterdir()
    file.write_text(text)
    assert store.load(KEY) is None
    assert store.every() == []
    assert store.save(STORED)
    assert store.load(KEY) == STORED


def test_others_files_are_not_believed(folder):
    store = StrategyStore()
    store.save(STORED)
    (file,) = folder.iterdir()
    file.chmod(0o666)
    assert store.load(KEY) is None
    folder.chmod(0o777)
    assert StrategyStore().folder is None
    assert not StrategyStore().save(STORED)


def test_a_full_disk_leaves_what_was_there(folder, monkeypatch):
    store = StrategyStore()
    store.save(STORED)

    def full(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(room.os, "replace", full)
        assert not store.save(dataclasses.replace(STORED, about="new"))
    assert store.load(KEY) == STORED
    assert len(list(folder.iterdir())) == 1


def test_the_longest_unused_go_first(folder, monkeypatch):
    monkeypatch.setattr(room, "LIMIT_FILES", 3)
    store, keys = StrategyStore(), [dataclasses.replace(KEY, what=f"{number}") for number in range(5)]
    for age, key in enumerate(keys):
        store.save(dataclasses.replace(STORED, key=key))
        room.os.utime(folder / key.file_name, (age, age))
    assert [key.what for key in keys if store.load(key) is not None] == ["2", "3", "4"]


@pytest.mark.slow
def test_processes_see_whole_strategies_only(folder):
    workers = [subprocess.Popen([sys.executable, "-c", HAMMER, str(own)], stderr=subprocess.PIPE) for own in (1, 7, 30)]
    said = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], said
    assert len(list(folder.iterdir())) == 1


def test_the_command_shows_ships_and_forgets(folder, tmp_path, capsys):
    StrategyStore().save(STORED)
    assert main(["strategies", "show", "--trials"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "1 in ",
        "exp of x",
        "2^20 records",
        "depth=3, k0(unroll=4)",
        "12.5 %",
        "12 % faster, give or take 1.0 %, 6 measurements",
        "2023-11-14",
    ):
        assert words in shown
    file = str(tmp_path / "all.json")
    assert main(["strategies", "export", file]) == 0
    assert main(["strategies", "clear"]) == 0
    assert list(folder.iterdir()) == []
    assert main(["strategies", "import", file]) == 0
    assert main(["strategies", "import", file]) == 0
    said = capsys.readouterr().out
    assert "1 strategies forgotten" in said
    assert "1 of 1 strategies taken over" in said
    assert "0 of 1 strategies taken over" in said
    assert StrategyStore().load(KEY) == STORED


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff\xfe", b'{"strategies": [{}]}', b'{"strategies": {}}'])
def test_other_files_are_not_imported(folder, tmp_path, capsys, text):
    (tmp_path / "other.json").write_bytes(text)
    assert main(["strategies", "import", str(tmp_path / "other.json")]) == 2
    assert "strategies" in capsys.readouterr().err
    assert main(["strategies", "import", str(tmp_path / "none.json")]) == 2
    assert main(["strategies", "export", str(tmp_path / "no" / "folder.json")]) == 1
    assert StrategyStore().every() == []


def test_exported_text_is_checked():
    with pytest.raises(PlanError, match="as exported strategies"):
        read_exported("{")


def test_trials_are_told():
    assert str(Tuning()) == "strategy: defaults, nothing was tried"
    assert "k0 unroll=4 (12 % faster)" in str(TUNING)
    assert "a note" in str(TUNING)
