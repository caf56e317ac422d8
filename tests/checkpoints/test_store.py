"""Checkpoints: complete or not there, verified, rotated, and safe to load."""

import errno
import hashlib
import json
import logging
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import keisei
from keisei.checkpoints import rotation
from keisei.checkpoints.store import (
    CheckpointError,
    list_checkpoints,
    load_checkpoint,
    load_model_weights,
    load_newest,
    save_checkpoint,
)
from keisei.errors import KeiseiError
from keisei.shogi.vector import VectorShogi
from tests.checkpoints.states import same, states

FILES = ("weights.safetensors", "ema.safetensors", "state.safetensors", "state.json", "config.json")


def small_state(number: int) -> dict[str, Any]:
    return {
        "model": {"w": np.full(50, number, np.float32)},
        "ema": {"w": np.full(50, number + 0.5, np.float32)},
        "games": np.full(50, number),
        "counters": {"games": number, "rng": 2**127 + number},
    }


def save(directory: Path, timestep: int, *, keep: int = 10, **more: Any) -> Path:
    arguments: dict[str, Any] = {
        "update": timestep // 10,
        "state": small_state(timestep),
        "config_json": f'{{"seed": {timestep}}}',
        **more,
    }
    return save_checkpoint(directory, timestep=timestep, keep=keep, **arguments)


def rewrite(path: Path, name: str, data: bytes) -> None:
    """Change a file as someone would who wants to deceive: with matching sums."""
    (path / name).write_bytes(data)
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    sign(path, manifest)


def sign(path: Path, manifest: dict[str, Any]) -> None:
    """Give a manifest the sum that docs/checkpoints.md describes."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    compact = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    signed = {**fields, "sha256": hashlib.sha256(compact.encode("ascii")).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(signed), encoding="utf-8")


def raising(code: int, *, after: int = 0, real: Callable[..., Any] | None = None) -> Any:
    """A system call that fails, after so many calls that did not."""
    left = iter(range(after))

    def call(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is None or real is None:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    return call


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# What is saved comes back.


@settings(deadline=None, max_examples=25)
@given(state=states, config_json=st.text())
def test_what_is_saved_is_loaded(state: dict[str, Any], config_json: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = save(Path(name), 12, state=state, config_json=config_json)
        loaded = load_checkpoint(path)
    assert (loaded.path, loaded.timestep, loaded.update) == (path, 12, 1)
    assert loaded.config_json == config_json
    assert loaded.state.keys() == state.keys()
    assert all(same(state[key], loaded.state[key]) for key in state)


def test_files_and_manifest(tmp_path: Path) -> None:
    path = save(tmp_path / "run" / "checkpoints", 123456)
    assert path.name == "step-000000123456"
    assert names(path) == sorted((*FILES, "manifest.json"))
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["version"]) == ("keisei-checkpoint", 2)
    assert (manifest["timestep"], manifest["update"]) == (123456, 12345)
    assert manifest["created"].endswith("+00:00")
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["files"].keys() == set(FILES)
    assert "state" not in repr(load_checkpoint(path))


def test_other_programs_can_read_the_weights(tmp_path: Path) -> None:
    """Among them torch."""
    model = torch.nn.Linear(3, 2)
    path = save(tmp_path, 1, state={"model": {k: v.numpy() for k, v in model.state_dict().items()}})
    weights = safetensors.torch.load_file(path / "weights.safetensors")
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())


def test_arrays_that_share_memory_are_stored_each(tmp_path: Path) -> None:
    base = np.arange(12.0)
    state = {"model": {"a": base, "b": base}, "views": [base[2:5], base[4:9], base.reshape(3, 4).T]}
    loaded = load_checkpoint(save(tmp_path, 1, state=state)).state
    assert same(state, loaded)
    loaded["model"]["a"][...] = 0.0
    assert np.array_equal(loaded["model"]["b"], base)


def test_games_under_way_go_on_exactly(tmp_path: Path) -> None:
    with VectorShogi(num_games=3, seed=5) as env, VectorShogi(num_games=3, seed=6) as other:
        for _ in range(15):
            env.step(env.sample_actions())
        path = save(tmp_path, 60, state={"env": env.state()})
        other.restore(load_checkpoint(path).state["env"])
        for _ in range(15):
            env.step(env.sample_actions())
            other.step(other.sample_actions())
        assert same(env.state(), other.state())


def test_players_get_the_averaged_weights_if_there_are_any(tmp_path: Path) -> None:
    path = save(tmp_path, 7)
    weights, config_json = load_model_weights(path)
    assert same(weights, {"w": np.full(50, 7.5, np.float32)})
    assert config_json == '{"seed": 7}'

    model_only = save(tmp_path, 8, state={"model": small_state(8)["model"]})
    for name in ("state.json", "state.safetensors"):
        (model_only / name).unlink()  # not needed
    assert same(load_model_weights(model_only)[0], {"w": np.full(50, 8.0, np.float32)})

    (path / "ema.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"ema\.safetensors: truncated"):
        load_model_weights(path)
    with pytest.raises(CheckpointError, match=r"does not list weights\.safetensors"):
        load_model_weights(save(tmp_path, 9, state={"counters": 1}))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"state": {"a": {"b": object()}}}, TypeError),
        ({"state": {3: 1}}, TypeError),
        ({"state": {"model": {"w": 1}}}, TypeError),
        ({"state": {"ema": [np.zeros(1)]}}, TypeError),
        ({"state": {"model": {"w": torch.zeros(1)}}}, TypeError),
        ({"state": {"model": {"w": np.zeros(1, "i1,f4")}}}, TypeError),
        ({"keep": 0}, ValueError),
        ({"update": -1}, ValueError),
    ],
)
def test_wrong_calls_write_nothing(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        save(tmp_path, 1, **changes)
    assert names(tmp_path) == []


# The newest good one.


def test_there_may_be_none(tmp_path: Path) -> None:
    assert load_newest(tmp_path) is None
    assert load_newest(tmp_path / "missing") is None
    assert list_checkpoints(tmp_path / "missing") == []


def test_the_newest_good_one_is_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good, changed, cut = (save(tmp_path, timestep) for timestep in (100, 200, 1000))
    with (changed / "weights.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    os.truncate(cut / "state.json", 10)
    newest = load_newest(tmp_path)
    assert newest is not None
    assert newest.path == good
    warnings = [record.getMessage() for record in caplog.records]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert f"{cut / 'state.json'}: truncated: 10 bytes instead of" in warnings[0]
    assert f"{changed / 'weights.safetensors'}: changed since it was written" in warnings[1]

    (good / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="no good checkpoint") as caught:
        load_newest(tmp_path)
    for path in (good, changed, cut):
        assert str(path) in str(caught.value)


def test_saving_the_same_timestep_again_replaces_nothing(tmp_path: Path) -> None:
    first = save(tmp_path, 5)
    paths = [first, *(save(tmp_path, 5, state=small_state(n)) for n in range(2, 12))]
    assert list_checkpoints(tmp_path) == paths[-10:]
    newest = load_newest(tmp_path)
    assert newest is not None
    assert same(newest.state, small_state(11))


# Bad files are found out.


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("checkpoints"), 3)


@contextmanager
def damaged(path: Path, data: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(before)


@settings(deadline=None, max_examples=100)
@given(
    name=st.sampled_from((*FILES, "manifest.json")), place=st.floats(0, 1), bit=st.integers(0, 7)
)
def test_any_changed_bit_is_noticed(saved: Path, name: str, place: float, bit: int) -> None:
    data = bytearray((saved / name).read_bytes())
    data[int(place * (len(data) - 1))] ^= 1 << bit
    with damaged(saved / name, bytes(data)), pytest.raises(CheckpointError, match=name):
        load_checkpoint(saved)


@settings(deadline=None, max_examples=50)
@given(name=st.sampled_from((*FILES, "manifest.json")), place=st.floats(0, 1))
def test_any_truncation_is_noticed(saved: Path, name: str, place: float) -> None:
    data = (saved / name).read_bytes()
    short = data[: int(place * (len(data) - 1))]
    with damaged(saved / name, short), pytest.raises(CheckpointError, match=name):
        load_checkpoint(saved)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    path = save(tmp_path, 1)
    (path / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: the file is missing"):
        load_checkpoint(path)
    (path / name).mkdir()
    with pytest.raises(CheckpointError, match=f"{name}: not a regular file"):
        load_checkpoint(path)


@pytest.mark.parametrize("call", ["stat", "read_bytes"])
def test_files_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = save(tmp_path, 1)
    monkeypatch.setattr(Path, call, raising(errno.EIO))
    with pytest.raises(CheckpointError, match=r"manifest\.json: cannot be read: "):
        load_checkpoint(path)


def test_what_is_no_checkpoint_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"manifest\.json: the file is missing"):
        load_checkpoint(tmp_path / "nowhere")
    file = tmp_path / "step-000000000001"
    file.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"manifest\.json: the file is missing"):
        load_checkpoint(file)
    with pytest.raises(CheckpointError, match="cannot be read"):
        list_checkpoints(file)
    (tmp_path / "manifest.json").write_text('{"name": "web app"}', encoding="utf-8")
    with pytest.raises(CheckpointError, match="not the manifest of a checkpoint"):
        load_checkpoint(tmp_path)
    assert issubclass(CheckpointError, KeiseiError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, r"format version 1, but this Keisei \(.*\) reads version 2"),
        ({"version": None}, "format version None"),
        ({"timestep": -1}, "not a valid manifest"),
        ({"timestep": "1"}, "not a valid manifest"),
        ({"files": {}}, "does not list config.json"),
        ({"files": {"../../secret": {"size": 1, "sha256": ""}}}, "lists unknown files"),
    ],
)
def test_manifests_that_cannot_be(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = save(tmp_path, 1)
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    sign(path, {**manifest, **change})
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


# A checkpoint of someone who means harm, with matching sums.


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.abort, ())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("weights.safetensors", pickle.dumps(Bomb())),
        ("state.safetensors", b"\xff" * 8 + b"{}"),
        ("ema.safetensors", b""),
        ("state.json", b"[]"),
        ("state.json", b"[" * 100_000),
        ("state.json", b'{"games": ' + b"[" * 990 + b"]" * 990 + b"}"),
        ("state.json", b'{"games": {"$array": "games", "dtype": "|O", "shape": [50]}}'),
        ("state.json", b'{"games": {"$array": "missing"}}'),
        ("state.json", b'{"model": {"w": {"$array": "games"}}}'),
        ("state.json", pickle.dumps(Bomb())),
        ("config.json", b"\xff"),
    ],
)
def test_foreign_checkpoints_do_no_harm(tmp_path: Path, name: str, data: bytes) -> None:
    path = save(tmp_path, 1)
    rewrite(path, name, data)
    with pytest.raises(CheckpointError, match=name):
        load_checkpoint(path)


def test_booleans_are_checked(tmp_path: Path) -> None:
    path = save(tmp_path, 1, state={"model": {"mask": np.ones(4, np.bool_)}})
    data = (path / "weights.safetensors").read_bytes()
    rewrite(path, "weights.safetensors", data[:-1] + b"\x02")
    with pytest.raises(CheckpointError, match="neither 0 nor 1"):
        load_model_weights(path)


def test_nothing_is_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("pickle is used")

    for module, name in ((pickle, "loads"), (pickle, "load"), (torch, "load"), (np, "load")):
        monkeypatch.setattr(module, name, refuse)
    for module, name in ((pickle, "dumps"), (pickle, "dump"), (torch, "save"), (np, "save")):
        monkeypatch.setattr(module, name, refuse)
    assert same(small_state(1), load_checkpoint(save(tmp_path, 1)).state)


# Rotation.


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for timestep in range(1, 7):
        save(tmp_path, timestep, keep=3)
        assert len(list_checkpoints(tmp_path)) == min(timestep, 3)
    assert names(tmp_path) == [f"step-{timestep:012d}" for timestep in (4, 5, 6)]


def test_bad_checkpoints_do_not_count_as_kept(tmp_path: Path) -> None:
    paths = [save(tmp_path, timestep) for timestep in range(1, 6)]
    os.truncate(paths[3] / "weights.safetensors", 5)
    save(tmp_path, 6, keep=3)
    assert [path.name[-1] for path in list_checkpoints(tmp_path)] == ["3", "4", "5", "6"]
    save(tmp_path, 7, keep=3)
    assert [path.name[-1] for path in list_checkpoints(tmp_path)] == ["5", "6", "7"]


def test_later_checkpoints_and_foreign_files_stay(tmp_path: Path) -> None:
    later = save(tmp_path, 900)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "best").mkdir()
    path = save(tmp_path, 5, keep=1)
    assert names(tmp_path) == sorted(["best", "notes.txt", path.name, later.name])


def test_leftovers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    old, young = tmp_path / ".unfinished-1", tmp_path / ".unfinished-2"
    for path in (old, young, tmp_path / ".removed-3"):
        path.mkdir()
        (path / "weights.safetensors").write_bytes(b"half")
    hours_ago = old.stat().st_mtime - 2 * rotation.ABANDONED_AFTER
    for path in (old / "weights.safetensors", old, young):
        os.utime(path, (hours_ago, hours_ago))  # the young one still has a fresh file in it
    path = save(tmp_path, 5)
    assert names(tmp_path) == sorted([young.name, path.name])


def test_whoever_resumes_removes_what_a_kill_left(tmp_path: Path) -> None:
    path = save(tmp_path, 5)
    for name in (".unfinished-000000000006-ab", ".removed-3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.safetensors").write_bytes(b"half")
    rotation.remove_leftovers(tmp_path)
    assert names(tmp_path) == [path.name]
    rotation.remove_leftovers(tmp_path / "missing")


def test_a_checkpoint_that_cannot_be_removed_is_only_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = save(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr("os.rmdir", raising(errno.EACCES))
        second = save(tmp_path, 2, keep=1)
    assert list_checkpoints(tmp_path) == [second]
    assert [name[: len(".removed-")] for name in names(tmp_path)] == [".removed-", "step-0000"]
    assert "cannot remove old checkpoints" in caplog.text
    assert os.strerror(errno.EACCES) in caplog.text
    assert not first.exists()
    third = save(tmp_path, 3, keep=1)
    assert names(tmp_path) == [third.name]


# Disk full, killed.


@pytest.mark.parametrize(
    ("call", "calls"),
    [
        *(("fsync", calls) for calls in range(6 if os.name == "nt" else 7)),
        ("rename", 0),
        ("mkdir", 0),
    ],
)
def test_a_full_disk_leaves_the_earlier_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, calls: int
) -> None:
    earlier = save(tmp_path, 1)
    with monkeypatch.context() as patch:
        real = getattr(os, call)
        patch.setattr(os, call, raising(errno.ENOSPC, after=calls, real=real))
        with pytest.raises(CheckpointError, match=r"step 2 into .*: No space left on device"):
            save(tmp_path, 2, keep=1)
    assert names(tmp_path) == [earlier.name]
    assert same(load_checkpoint(earlier).state, small_state(1))
    assert load_checkpoint(save(tmp_path, 2, keep=1)).timestep == 2


@pytest.mark.skipif(os.name == "nt", reason="directories are not synchronized")
def test_a_name_that_may_not_be_on_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = save(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", raising(errno.EIO, after=7, real=os.fsync))
        with pytest.raises(CheckpointError, match=os.strerror(errno.EIO)):
            save(tmp_path, 2, keep=1)
    assert len(list_checkpoints(tmp_path)) == 2
    for path in list_checkpoints(tmp_path):  # the new one is complete, the earlier one stays
        load_checkpoint(path)
    assert earlier.exists()


@pytest.mark.skipif(os.name == "nt", reason="no limits on the size of files")
def test_a_write_that_is_cut_off_half_way(tmp_path: Path) -> None:
    import resource

    earlier = save(tmp_path, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    big = {**small_state(2), "games": np.zeros(100_000, np.uint8)}
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match="File too large"):
            save(tmp_path, 2, state=big, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == [earlier.name]


def test_interrupted_by_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = save(tmp_path, 1)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, 2, keep=1)
    assert names(tmp_path) == [earlier.name]


@pytest.mark.skipif(os.name == "nt", reason="directories are not synchronized")
def test_file_systems_that_cannot_synchronize_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def only_files(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(handle)

    monkeypatch.setattr("os.fsync", only_files)
    assert load_checkpoint(save(tmp_path, 2)).timestep == 2


KILLED_AGAIN_AND_AGAIN = textwrap.dedent("""
    import os, random, signal, sys, time
    from pathlib import Path
    import numpy as np
    from keisei.checkpoints.store import load_newest, save_checkpoint

    directory = Path(sys.argv[1])

    def state(step):
        return {
            "model": {"w": np.full(100_000, step, np.float32)},
            "games": np.full(100_000, step),
            "counters": [step, {0: 2**100 + step}],
        }

    def save(step):
        save_checkpoint(
            directory,
            timestep=step,
            update=step,
            state=state(step),
            config_json=str(step),
            keep=2,
        )

    def save_for_ever(step, report):
        while True:
            os.write(report, step.to_bytes(8, "little"))
            step += 1
            save(step)

    save(0)
    begin = time.perf_counter()
    save(1)
    one_save = time.perf_counter() - begin

    random.seed(0)
    step, unfinished, rounds = 1, 0, 0
    while rounds < 15 or (rounds < 100 and not (step > 3 and unfinished)):  # where a save is slow
        rounds += 1
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            save_for_ever(step, writer)
        os.close(writer)
        reports = os.read(reader, 8)
        time.sleep(random.uniform(0, 3 * one_save))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        reports += os.read(reader, 1 << 16)
        os.close(reader)
        reported = int.from_bytes(reports[-8:], "little")

        newest = load_newest(directory)
        assert newest.timestep in (reported, reported + 1), (newest.timestep, reported)
        step = newest.timestep
        expected = state(step)
        assert np.array_equal(newest.state["model"]["w"], expected["model"]["w"])
        assert np.array_equal(newest.state["games"], expected["games"])
        assert newest.state["counters"] == expected["counters"]
        assert newest.config_json == str(step) and newest.update == step
        unfinished = sum(name.startswith(".unfinished") for name in os.listdir(directory))
    print(step, unfinished)
""")


@pytest.mark.skipif(os.name == "nt", reason="processes are not forked")
def test_killed_at_any_moment(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", KILLED_AGAIN_AND_AGAIN, str(tmp_path)],
        cwd=Path(keisei.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "skipping" not in run.stderr
    saved, unfinished = map(int, run.stdout.split())
    assert saved > 3
    assert unfinished > 0, "no kill came in the middle of a save"


def test_a_huge_manifest_is_not_read(tmp_path: Path) -> None:
    """Before, 2 GB were read into memory, which a sparse file does not even take on the disk."""
    path = save(tmp_path, 1)
    with (path / "manifest.json").open("r+b") as file:
        file.truncate(2 << 30)
    with pytest.raises(CheckpointError, match="2,147,483,648 bytes, but at most 1,048,576 are"):
        load_checkpoint(path)


def test_tensors_are_not_read_before_their_header(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    name = "state.safetensors"
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name]["size"] = 2 << 30
    sign(path, manifest)
    with (path / name).open("r+b") as file:
        file.truncate(2 << 30)
    with pytest.raises(CheckpointError, match=f"{name}: .*size differs from that in its header"):
        load_checkpoint(path)


def test_hundreds_of_thousands_of_empty_tensors_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    entry = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = "{" + ",".join(f'"{number}":{entry}' for number in range(300_000)) + "}"
    data = len(header).to_bytes(8, "little") + header.encode()
    rewrite(path, "state.safetensors", data)
    with pytest.raises(CheckpointError, match=r"its header has .* bytes, at most 16,777,216 are"):
        load_checkpoint(path)


def test_a_huge_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    name = "state.safetensors"
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name]["size"] = 2 << 30
    sign(path, manifest)
    with (path / name).open("r+b") as file:
        file.write((1 << 30).to_bytes(8, "little"))
        file.truncate(2 << 30)
    with pytest.raises(CheckpointError, match=r"its header has .* bytes, at most 16,777,216 are"):
        load_checkpoint(path)


def test_a_large_pool_of_opponents_can_be_read_back(tmp_path: Path) -> None:
    """Headers of more than 8 MiB were written, and refused when the run was resumed."""
    names = [f"trunk.blocks.{number}.normalization.weight" for number in range(100)]
    weights = np.zeros(1, np.float32)
    snapshots = [dict.fromkeys(names, weights) for _ in range(1_000)]
    path = save(tmp_path, 1, state={**small_state(1), "pool": {"snapshots": snapshots}})
    assert int.from_bytes((path / "state.safetensors").read_bytes()[:8], "little") > 8 << 20
    assert len(load_checkpoint(path).state["pool"]["snapshots"]) == 1_000
