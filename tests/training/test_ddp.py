"""Several learners: the same games as one has, exact resuming, and a proper end whatever happens.

Most of it runs with learners in threads; what only real processes can show is launched by torchrun.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keisei
from keisei.callbacks import EventBus, StepEnd
from keisei.checkpoints.store import Checkpoint, load_newest
from keisei.errors import KeiseiError
from keisei.network.predictor import weights_checksum
from keisei.network.towers import device as device_module
from keisei.network.towers.device import learner_device
from keisei.ppo import distributed as ranks_module
from keisei.ppo import learner as resources
from keisei.ppo.buffer import Experience
from keisei.ppo.distributed import process_group
from keisei.ppo.learner import (
    RankLostError,
    Ranks,
    learner_threads,
    make_learner,
    number_of_workers,
)
from keisei.selfplay.source import SelfPlay
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.system import InterruptFlag, module_environment
from keisei.timing import SectionTimer
from keisei.training.trainer import Trainer
from tests.threaded_ranks import ThreadedRanks, make_ranks, run_all
from tests.tiny import TINY, tiny_config, tiny_trainer
from tests.training.test_run import train
from tests.training.test_trainer import Witness

POOL = ("selfplay.pool_share=0.5", "selfplay.pool_interval=1")


def make_trainers(directory: Path, size: int, *overrides: str, witness: Witness) -> list[Trainer]:
    """One for each rank; the first one tells the witness."""
    config = tiny_config(*overrides)
    return [
        Trainer(config, directory, EventBus([witness] if rank.is_first else []), rank)
        for rank in make_ranks(size)
    ]


def together(trainers: list[Trainer], do: Callable[[Trainer], Any]) -> list[Any]:
    ranks = [trainer.ranks for trainer in trainers if isinstance(trainer.ranks, ThreadedRanks)]
    return run_all(ranks, lambda rank: do(trainers[rank.rank]))


def games_of(experience: Experience) -> Counter[bytes]:
    """Each game's plies: positions, by field as their records have gaps, and moves."""
    names = experience.packed.dtype.names
    assert names is not None
    fields = [*(experience.packed[name] for name in names), experience.actions]
    return Counter(
        b"".join(field[:, game].tobytes() for field in fields) for game in range(experience.games)
    )


def fingerprint(trainer: Trainer) -> int:
    return weights_checksum(trainer.learner.network.weights())


def newest(directory: Path) -> Checkpoint:
    checkpoint = load_newest(directory / "checkpoints")
    assert checkpoint is not None
    return checkpoint


def test_two_learners_play_the_games_that_one_plays(tmp_path: Path, family: str) -> None:
    """``env.num_games`` counts for each: two with 8 games play those of one with 16."""
    alone = tiny_trainer(tmp_path, family, "env.num_games=16", "env.opening_plies=2")
    parts = make_trainers(tmp_path, 2, family, "env.opening_plies=2", witness=Witness())
    for _ in range(3):
        alone.selfplay.collect(alone.buffer, alone.timer)
        for part in parts:
            part.selfplay.collect(part.buffer, part.timer)
        assert games_of(alone.buffer) == games_of(parts[0].buffer) + games_of(parts[1].buffer)
    assert len(games_of(alone.buffer)) == 16, "and no two of them are alike"


@pytest.mark.slow
def test_workers_of_a_second_learner_play_its_games(tmp_path: Path, family: str) -> None:
    config = tiny_config(family, "parallel.max_lag=0", "env.opening_plies=2")
    alone = tiny_trainer(tmp_path, family, "env.num_games=16", "env.opening_plies=2")
    whole, part = alone.buffer, Experience(config.selfplay.rollout_plies, 8)
    alone.selfplay.collect(whole, SectionTimer())
    with ParallelSelfPlay(config, workers=1, ranks=Ranks(1, 2)) as workers:
        workers.sync_weights(alone.learner.network, 0)
        workers.collect(part, SectionTimer())
    assert (part.packed == whole.packed[:, 8:]).all()
    assert (part.actions == whole.actions[:, 8:]).all()


def test_all_plies_are_counted_once_and_learned_together(tmp_path: Path, family: str) -> None:
    witness = Witness()
    settings = (family, *POOL, "selfplay.rollout_plies=24", "run.total_timesteps=768")
    trainers = make_trainers(tmp_path, 2, *settings, witness=witness)
    assert together(trainers, Trainer.run) == ["finished"] * 2
    for trainer in trainers:
        assert (trainer.timestep, trainer.update) == (768, 2), "two learners, 8 games, 24 plies"
        assert trainer.games == trainers[0].games > 8
        assert fingerprint(trainer) == fingerprint(trainers[0])
    steps = [event for event in witness.of(StepEnd) if isinstance(event, StepEnd)]
    assert sum(step.metrics["games/finished"] for step in steps) == trainers[0].games
    for step in steps:
        seconds = sum(v for name, v in step.metrics.items() if name.startswith("time/"))
        assert step.metrics["charts/SPS"] == pytest.approx(384 / seconds)


def test_as_many_learners_go_on_bit_by_bit(tmp_path: Path, family: str) -> None:
    settings = (family, *POOL, "ppo.ema_decay=0.9", "run.total_timesteps=512")
    whole = make_trainers(tmp_path / "whole", 2, *settings, witness=Witness())
    together(whole, Trainer.run)
    first = make_trainers(tmp_path / "parts", 2, *settings, witness=Witness())
    together(first, lambda trainer: end_after(trainer, 2))
    second = make_trainers(tmp_path / "parts", 2, *settings, witness=Witness())
    for trainer in second:
        trainer.restore(newest(tmp_path / "parts"))
    assert [trainer.update for trainer in second] == [2, 2]
    together(second, Trainer.run)
    assert second[0].games == whole[0].games
    assert fingerprint(second[0]) == fingerprint(second[1]) == fingerprint(whole[0])
    assert games_of(second[1].buffer) == games_of(whole[1].buffer)


def end_after(trainer: Trainer, updates: int) -> str:
    """Interrupt a run; only its last rank hears of it."""
    interrupt = InterruptFlag()
    real = trainer.train_step

    def step() -> None:
        real()
        interrupt.is_set = trainer.update >= updates and not trainer.ranks.is_first

    trainer.train_step = step  # type: ignore[method-assign]
    return trainer.run(interrupt)


def test_any_learner_that_is_interrupted_ends_the_run_for_all(tmp_path: Path, family: str) -> None:
    trainers = make_trainers(tmp_path, 3, family, "run.total_timesteps=100000", witness=Witness())
    reasons = together(trainers, lambda trainer: end_after(trainer, 2))
    assert reasons == ["interrupted"] * 3
    assert newest(tmp_path).update == 2


def test_other_numbers_of_learners_go_on_too(tmp_path: Path, family: str) -> None:
    settings = (family, *POOL, "run.total_timesteps=256", "env.opening_plies=2")
    two = make_trainers(tmp_path, 2, *settings, witness=Witness())
    together(two, Trainer.run)
    checkpoint = newest(tmp_path)
    assert checkpoint.update == 2
    assert len(checkpoint.state["others"]) == 1
    assert checkpoint.state["others"][0]["selfplay"]["pool"]["snapshots"] == [], "kept once"

    beginning = make_trainers(tmp_path, 4, *settings, witness=Witness())
    for size in (1, 4):
        trainers = make_trainers(
            tmp_path, size, *settings, "run.total_timesteps=768", witness=Witness()
        )
        for trainer in trainers:
            trainer.restore(newest(tmp_path))
            assert isinstance(trainer.selfplay, SelfPlay)
            assert len(trainer.selfplay.pool.snapshots) == 2, "all know the earlier selves"
        together(trainers, Trainer.train_step)
        assert len({fingerprint(trainer) for trainer in trainers}) == 1
        assert {t.timestep for t in trainers} == {256 + size * 64}
        assert len(sum((games_of(t.buffer) for t in trainers), Counter())) == size * 8
    for trainer, new in zip(trainers[2:], beginning[2:], strict=True):
        assert isinstance(trainer.selfplay, SelfPlay)
        assert isinstance(new.selfplay, SelfPlay)
        trainer.selfplay.env.reset()
        games = [source.env.packed.tobytes() for source in (trainer.selfplay, new.selfplay)]
        assert games[0] != games[1], "those that are new have openings of their own"


def test_when_one_is_lost_the_first_saves_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainers = make_trainers(tmp_path, 2, "checkpoint.interval=0", witness=Witness())
    lost = RankLostError("another learner is gone")
    real = ThreadedRanks._gather

    def gather(rank: ThreadedRanks, item: Any) -> list[Any]:
        if trainers[rank.rank].update == 2:
            raise lost
        return real(rank, item)

    monkeypatch.setattr(ThreadedRanks, "_gather", gather)
    with pytest.raises(RankLostError):
        together(trainers, Trainer.run)
    checkpoint = newest(tmp_path)
    assert checkpoint.update == 2
    assert checkpoint.state["others"] == []
    tiny_trainer(tmp_path).restore(checkpoint)


def test_learners_share_the_cores_of_their_machine(
    monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.setattr(resources, "usable_cpus", lambda: 16)
    ranks = Ranks(1, 4, local_rank=1, local_size=2)
    config = tiny_config("device.threads=0")
    assert learner_threads(config, ranks, on_cpu=True) == 8
    assert learner_threads(tiny_config("device.threads=3"), ranks, on_cpu=True) == 3
    auto = tiny_config(family, "device.threads=0", "parallel.num_workers=auto")
    assert number_of_workers(auto, ranks, on_cpu=True) == 4, "8 games cannot be shared by 7"
    assert learner_threads(auto, ranks, on_cpu=True) == 4
    learner = make_learner(auto, seed=0, random=np.random.default_rng(0), ranks=ranks)
    assert (learner.network.device, learner.network.threads) == ("cpu", 4)


def test_each_learner_on_a_machine_has_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as that can be seen without any."""
    monkeypatch.setattr(
        device_module,
        "choose_device",
        lambda name: torch.device("cuda" if name == "auto" else name),
    )
    for name, expected in (("auto", "cuda:1"), ("cuda", "cuda:1"), ("cuda:3", "cuda:3")):
        assert learner_device(name, local_rank=1, size=8) == torch.device(expected)
    assert learner_device("auto", local_rank=0, size=1) == torch.device("cuda")


def test_learners_on_gpus_talk_by_nccl_and_agree_by_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(backend: str, **options: object) -> None:
        raise RuntimeError(f"asked for {backend}\nand more")

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("torch.distributed.init_process_group", refuse)
    monkeypatch.setattr(ranks_module, "choose_device", torch.device)
    for device, backend in (("cuda:1", "cpu:gloo,cuda:nccl"), ("cpu", "gloo")):
        with (
            pytest.raises(KeiseiError, match=rf"cannot be reached: asked for {backend}$"),
            process_group(tiny_config(f"device.device={device}")),
        ):
            pass


def test_what_gloo_says_is_cut_to_a_sentence() -> None:
    error = RuntimeError(
        "[/src/gloo/pair.cc:537] Read error [127.0.0.1]:23760: Connection reset by peer. This is "
        "typically caused by something.\nMore"
    )
    assert ranks_module._line(error) == "Read error [127.0.0.1]:23760: Connection reset by peer"


# ---- real processes ----


class Launch:
    """``keisei train --ddp`` under torchrun, and all processes that belong to it."""

    def __init__(self, size: int, *arguments: str) -> None:
        self._mark = f"KEISEI_TEST={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
                *("--nproc-per-node", str(size), "-m", "keisei", "train", "--ddp", *arguments),
            ],
            cwd=Path(keisei.__file__).parent.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                name: value,
                "OMP_NUM_THREADS": "1",
                "PYTHONFAULTHANDLER": "1",
            },
        )

    def output(self, timeout: float = 600.0) -> str:
        return self.process.communicate(timeout=timeout)[0]

    def processes(self) -> dict[int, dict[str, str]]:
        """The environment of each, by its number."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                lines = path.read_text(errors="replace").split("\0")
                if self._mark in lines:
                    found[int(path.parent.name)] = dict(
                        line.split("=", 1) for line in lines if line
                    )
        return found

    def rank(self, number: int) -> int:
        """The process of a rank."""
        return min(
            process
            for process, environment in self.processes().items()
            if environment.get("RANK") == str(number)
        )


@contextmanager
def launched(size: int, *arguments: str) -> Iterator[Launch]:
    launch = Launch(size, *arguments)
    try:
        yield launch
    finally:
        for process in launch.processes() if launch.process.poll() is None else ():
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        launch.process.communicate()


def wait_for_updates(run: Path, update: int, launch: Launch) -> None:
    """Until so many updates are done."""
    deadline = time.monotonic() + 240.0
    while not any(line["update"] >= update for line in journal(run) if line["event"] == "step"):
        assert launch.process.poll() is None, launch.output()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def journal(run: Path) -> list[dict[str, Any]]:
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def settings(*values: str) -> list[str]:
    return [part for value in values for part in ("--set", value)]


ENDLESS = settings("run.total_timesteps=100000000", "checkpoint.interval=100000")


@pytest.mark.soak
def test_the_example_of_two_learners(family: str) -> None:
    script = Path(keisei.__file__).parents[1] / "scripts" / "selfplay_ddp.py"
    answer = subprocess.run(
        [sys.executable, script, "--minutes", "0.01", *settings(*TINY, family, *POOL)],
        capture_output=True,
        text=True,
        timeout=240.0,
        check=False,
        env=module_environment(OMP_NUM_THREADS="1", COLUMNS="100"),
    )
    assert answer.returncode == 0, answer.stderr
    assert "the weights are the same" in answer.stdout
    checksums = re.findall(r"learner (\d) of 2.* ([0-9a-f]{8}) ", answer.stdout)
    assert [number for number, _ in checksums] == ["1", "2"]
    assert checksums[0][1] == checksums[1][1]


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks at processes in /proc")
def test_learners_under_torchrun(tmp_path: Path, family: str) -> None:
    """One run through several launches: two learners, three of which one is killed, two, one."""
    run = tmp_path / "run"
    tiny = settings(*TINY, family, f"run.root={tmp_path}", *POOL)
    with launched(2, "--name", "run", *tiny) as launch:
        output = launch.output()
    assert launch.process.returncode == 0, output
    assert output.count("finished: 256 plies") == 1, "one learner speaks for all"
    assert [line["timestep"] for line in journal(run) if line["event"] == "step"] == [128, 256]
    assert journal(run)[0]["facts"]["learners"] == 2
    assert len(newest(run).state["others"]) == 1
    assert json.loads((run / "config.json").read_text())["device"]["device"] == "cpu"

    with launched(3, "--resume", str(run), *ENDLESS) as launch:
        wait_for_updates(run, 4, launch)
        start = time.monotonic()
        os.kill(launch.rank(1), signal.SIGKILL)
        output = launch.output()
        assert launch.processes() == {}, "nothing is left behind"
    assert launch.process.returncode != 0
    assert time.monotonic() - start < 100.0
    assert re.search("^error: another learner is gone", output, re.MULTILINE)
    assert "error: learner 3 of 3: another learner is gone" in output, output
    assert "keisei/training" not in output, "no traceback of ours"
    end = journal(run)[-1]
    assert end["event"] == "end"
    assert end["reason"].startswith("another learner is gone")
    assert newest(run).update == end["update"] >= 4, "what was learned is saved"

    update = end["update"]
    with launched(2, "--resume", str(run), *ENDLESS) as launch:
        wait_for_updates(run, update + 2, launch)
        os.kill(launch.rank(1), signal.SIGTERM)  # and nobody else
        output = launch.output()
        assert launch.processes() == {}
    assert output.count("interrupted: ") == 1
    checkpoint = newest(run)
    assert checkpoint.update == journal(run)[-1]["update"] >= update + 2
    assert len(checkpoint.state["others"]) == 1
    assert "have diverged" not in (run / "run.log").read_text(), "equal weights, bit by bit"

    with pytest.raises(KeiseiError, match=r"--set parallel\.ddp=false"):
        train(tmp_path, "--resume", str(run), *settings(family))
    total = f"run.total_timesteps={checkpoint.timestep + 64}"
    result = train(tmp_path, "--resume", str(run), *settings(family, "parallel.ddp=false", total))
    assert result.exit_code == 0
    assert newest(run).timestep == checkpoint.timestep + 64
