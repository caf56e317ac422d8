"""The memory of a sweep: every trial in an SQLite file, by optuna.

A trial is asked for, reported on while it trains, and told how it ended; each is on disk at once.
So a sweep that was killed finds its trials again, and those that were under way go on under their
old numbers.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from keisei.config import ConfigError, shown
from keisei.errors import KeiseiError
from keisei.sweep.space import (
    Choices,
    PrunerSettings,
    SamplerSettings,
    Sweep,
    Value,
)

if TYPE_CHECKING:
    import optuna

SWEEPS: Final = "sweeps"
"""The directory that holds the sweeps."""

STUDY: Final = "study.sqlite3"
"""Every trial, its parameters and scores: see `keisei.sweep.study`. optuna's own tools read it."""

TRIALS: Final = "trials"
"""The runs, one per trial: ``keisei runs`` lists them."""

BEST: Final = "best.yaml"
"""The best trial so far as a recipe."""

PLOT: Final = "scores.png"
"""The scores, trial by trial."""

IN_USE: Final = "in-use.lock"
"""Held by the process that directs the sweep."""

TRIALS_IN_USE: Final = "trials-in-use.lock"
"""Shared by the processes that train."""

OUTPUT: Final = "output.txt"
"""In a trial's run: what its process wrote to the terminal that it has not."""


def trial_directory(sweep_directory: Path, number: int) -> Path:
    """The run of a trial."""
    return sweep_directory / TRIALS / f"trial-{number:04}"


State = Literal["running", "complete", "pruned", "failed"]

NAME: Final = "keisei"
"""The name of the one study in the file."""

_ABOUT: Final = "keisei"
"""The study's attribute that says what is searched."""

_HALVING: Final = 2


@dataclass(frozen=True)
class TrialRecord:
    """What the study knows of a trial."""

    number: int
    state: State
    parameters: Mapping[str, Value]
    score: float | None
    """The result of a complete trial; of others, the last report if there was one."""

    games: int = 0
    """How many games the score of a complete trial is from."""

    reason: str = ""
    """Why it failed."""

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {**vars(self), "parameters": dict(self.parameters)}


def import_optuna() -> Any:
    """The optuna package; a `KeiseiError` that says how to get it where it is missing."""
    try:
        import optuna
    except ImportError as error:
        raise KeiseiError(
            "keisei sweep needs the package optuna, which is not installed: "
            'python -m pip install "keisei[sweep]"'
        ) from error
    return optuna


class OpenTrial:
    """A trial that is under way."""

    def __init__(
        self, trial: "optuna.Trial", parameters: Mapping[str, Value], reported: Iterable[int]
    ) -> None:
        self._trial = trial
        self.number = trial.number
        self.parameters = parameters
        self._reported = set(reported)

    def report(self, part: int, score: float) -> bool:
        """Tell the score in a part of the run; returns whether to go on.

        Each part counts once: a trial that was resumed may come by a second time.
        """
        if part in self._reported:
            return True
        self._reported.add(part)
        self._trial.report(score, part)
        return not self._trial.should_prune()


class Study:
    """The trials of a sweep, in the file of its directory."""

    def __init__(self, sweep: Sweep, directory: Path) -> None:
        self._optuna = import_optuna()
        self._sweep = sweep
        # The trials have a display of their own.
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        from sqlalchemy.engine import URL

        url = URL.create("sqlite", database=str(directory / STUDY))
        try:
            self._storage = self._optuna.storages.RDBStorage(url.render_as_string())
            self._study: optuna.Study = self._optuna.create_study(
                study_name=NAME,
                storage=self._storage,
                direction="maximize",
                pruner=_pruner(self._optuna, sweep.pruner),
                load_if_exists=True,
            )
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise KeiseiError(f"{directory / STUDY} cannot be used: {reason}") from error
        self._require_same(directory)

    def close(self) -> None:
        """Let go of the file."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    def records(self) -> list[TrialRecord]:
        """All trials in the order of their numbers."""
        return [_record(trial) for trial in self._study.get_trials(deepcopy=False)]

    def interrupted(self) -> list[int]:
        """The numbers of trials that no one has told the end of."""
        return [record.number for record in self.records() if record.state == "running"]

    def best(self) -> TrialRecord | None:
        """The complete trial with the highest score; None while there is none."""
        complete = [record for record in self.records() if record.state == "complete"]
        return max(complete, key=lambda record: record.score or 0.0, default=None)

    def ask(self) -> OpenTrial:
        """A new trial."""
        self._study.sampler = self._sampler(len(self._study.get_trials(deepcopy=False)))
        return self._with_parameters(self._study.ask())

    def reopen(self, number: int) -> OpenTrial:
        """A trial that an earlier session had under way."""
        self._study.sampler = self._sampler(number)
        study_id = self._storage.get_study_id_from_name(NAME)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        return self._with_parameters(self._optuna.Trial(self._study, trial_id))

    def complete(self, number: int, score: float, games: int) -> None:
        """A trial has done all it should."""
        self._note(number, "games", games)
        self._study.tell(number, score)

    def prune(self, number: int) -> None:
        """A trial was ended early."""
        self._study.tell(number, state=self._optuna.trial.TrialState.PRUNED)

    def fail(self, number: int, reason: str) -> None:
        """A trial has no score."""
        self._note(number, "reason", reason)
        self._study.tell(number, state=self._optuna.trial.TrialState.FAIL)

    def importances(self) -> dict[str, float]:
        """How much of what makes a good trial lies in each parameter, as shares; {} if untold.

        PED-ANOVA (Watanabe, Bansal and Hutter, 2023), which needs a handful of complete trials.
        """
        importance = self._optuna.importance
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is called experimental
            try:
                found = importance.get_param_importances(
                    self._study, evaluator=importance.PedAnovaImportanceEvaluator()
                )
            except (RuntimeError, ValueError):  # too few trials, or all alike
                return {}
        return {path: float(share) for path, share in found.items()}

    def _with_parameters(self, trial: "optuna.Trial") -> OpenTrial:
        """What a trial has been given already stays: a kill may have left it with a part."""
        parameters: dict[str, Value] = {}
        for path, parameter in self._sweep.space.items():
            if isinstance(parameter, Choices):
                parameters[path] = trial.suggest_categorical(
                    path, [str(choice) for choice in parameter.ends()]
                )
            elif parameter.whole:
                parameters[path] = trial.suggest_int(
                    path, int(parameter.low), int(parameter.high),
                    step=int(parameter.step or 1), log=parameter.log,
                )  # fmt: skip
            else:
                parameters[path] = trial.suggest_float(
                    path, parameter.low, parameter.high, step=parameter.step, log=parameter.log
                )
        known = self._study.get_trials(deepcopy=False)[trial.number]
        return OpenTrial(trial, parameters, known.intermediate_values)

    def _sampler(self, number: int) -> "optuna.samplers.BaseSampler":
        """The sampler of one trial.

        Its seed depends on the number: one seed for the sweep would draw the first trials again
        after each resume.
        """
        import numpy as np

        settings: SamplerSettings = self._sweep.sampler
        seed = int(np.random.SeedSequence([settings.seed, number]).generate_state(1)[0])
        samplers = self._optuna.samplers
        if settings.kind == "random":
            return cast("optuna.samplers.BaseSampler", samplers.RandomSampler(seed=seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # optuna 4 calls constant_liar experimental
            return cast(
                "optuna.samplers.BaseSampler",
                samplers.TPESampler(
                    seed=seed,
                    n_startup_trials=settings.startup_trials,
                    constant_liar=True,  # trials side by side keep away from each other
                ),
            )

    def _note(self, number: int, name: str, value: object) -> None:
        study_id = self._storage.get_study_id_from_name(NAME)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        self._storage.set_trial_user_attr(trial_id, name, value)

    def _require_same(self, directory: Path) -> None:
        """Scores can only be compared if they were searched for in the same way."""
        now = _about(self._sweep)
        before = self._study.user_attrs.get(_ABOUT)
        if before is None:
            self._study.set_user_attr(_ABOUT, now)
            return
        problems = [
            f"{path}: was {shown(before.get(path))}, is now {shown(now.get(path))}"
            for path in dict.fromkeys((*before, *now))
            # Fields that came with another version of Keisei are no change.
            if before.get(path) != now.get(path)
            and (not path.startswith("settings: ") or (path in before and path in now))
        ]
        if problems:
            raise ConfigError(
                [
                    f"{directory} holds trials of another search; take it back, or begin another "
                    "sweep with --name",
                    *problems,
                ]
            )


def _about(sweep: Sweep) -> dict[str, Any]:
    """What must not change between two sessions of a sweep, by name."""
    searched = {f"space: {path}": str(parameter) for path, parameter in sweep.space.items()}
    settings = {
        f"settings: {section}.{field}": value
        for section, fields in sweep.config().model_dump(mode="json").items()
        for field, value in fields.items()
        if f"{section}.{field}" not in sweep.space
    }
    return {"objective.against": list(sweep.objective.against), **searched, **settings}


def _pruner(optuna: Any, settings: PrunerSettings) -> Any:
    """The pruner; its steps are the parts of a run."""
    match settings.kind:
        case "off":
            return optuna.pruners.NopPruner()
        case "halving":
            return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=_HALVING)
        case "median":
            return optuna.pruners.MedianPruner(
                n_startup_trials=settings.startup_trials,
                n_warmup_steps=round(settings.warmup * settings.parts),
            )


def _record(trial: "optuna.trial.FrozenTrial") -> TrialRecord:
    states: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    score = trial.value
    if trial.state.name != "COMPLETE":
        reports = trial.intermediate_values
        score = reports[max(reports)] if reports else None
    return TrialRecord(
        number=trial.number,
        state=states.get(trial.state.name, "running"),
        parameters=trial.params,
        score=score,
        games=int(trial.user_attrs.get("games", 0)),
        reason=str(trial.user_attrs.get("reason", "")),
    )
