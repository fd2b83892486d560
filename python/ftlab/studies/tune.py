"""What ``ftlab tune`` does: asks Optuna for configurations, runs them, and reports the outcomes to Optuna."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ftlab._core import Config, InternalError, UserError
from ftlab.configs import Override, load
from ftlab.outputs import refuse_link
from ftlab.progress import Reporter
from ftlab.studies.cache import Folder
from ftlab.studies.declaration import study_of
from ftlab.studies.executor import Executor
from ftlab.studies.front import Trial, Tuned, importance, knee, pareto
from ftlab.studies.plan import Run, declared, key_of
from ftlab.studies.rows import names_of
from ftlab.studies.run import run
from ftlab.studies.toml import place
from ftlab.studies.tuning import Tuning, violation

JOURNAL = "trials.journal"
"""The name of the file in which Optuna keeps its trials."""

MOST_REPEATS = 300
"""How many proposals in a row must be known already before the space counts as exhausted."""
RANDOM_AFTER = 5
"""How many proposals in a row must be known already before the sampler counts as settled; proposals are then
made at random.
"""
CHECKED_WITH = 20
"""The number of choices of the other parameters with which a value is tried before it is refused."""


def config_of(tuning: Tuning, parameters: Mapping[str, str]) -> Config:
    """Returns the search's configuration with these values of its parameters.

    Raises:
        UserError: no configuration accepts these values.
    """
    keys = {each.name: each.key for each in tuning.parameters}
    folder = tuning.path.parent
    settings = dict(tuning.set)
    if trace := settings.get("workload.trace"):
        settings["workload.trace"] = str(folder / trace)
    settings |= {keys[name]: value for name, value in parameters.items()}
    base = str(folder / tuning.config) if tuning.config.endswith(".toml") else tuning.config
    return load(base, [Override(f"{key}={value}", key, value) for key, value in settings.items()])


def traced(tuning: Tuning) -> Iterator[tuple[str, Config]]:
    """Yields the default configuration, without a label, if it is valid; errors are left to the search."""
    with suppress(UserError):
        yield "", config_of(tuning, {})


class _Alone:
    """A lock that takes the place of Optuna's file lock: this command alone holds the directory."""

    def acquire(self) -> bool:
        """Succeeds: nobody else is there."""
        return True

    def release(self) -> None:
        """Does nothing: nobody waits."""


def _cut_unfinished(journal: Path) -> None:
    """Cuts off the last line of a journal if it is incomplete, as after a full disk or a kill.

    Optuna would append to that line, and could then read neither the old entry nor the new one.
    """
    if not journal.exists():
        return
    data = journal.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(journal, whole)


class Tuner:
    """A search in progress."""

    def __init__(self, tuning: Tuning, out: Path, executor: Executor, reporter: Reporter) -> None:
        """Makes the search; ``out`` is the directory of the results and of Optuna's own file.

        Raises:
            UserError: Optuna is not installed, or ``out`` holds another search.
        """
        try:
            import optuna
        except ImportError:
            raise UserError("tuning needs Optuna: pip install 'ftlab[tune]'") from None
        self._optuna: Any = optuna
        self._tuning = tuning
        self._executor = executor
        self._reporter = reporter
        self._cache = Folder(out / "json", say=reporter.note)
        self._seen: dict[tuple[tuple[str, str], ...], Trial] = {}
        self._asked = 0
        self._first: list[Mapping[str, str]] = []
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storages: Any = optuna.storages
        refuse_link(out, JOURNAL)
        self._journal = out / JOURNAL
        directions: Any = ["maximize" if each.maximize else "minimize" for each in tuning.objectives]
        with self._writing():
            _cut_unfinished(self._journal)
            backend = storages.journal.JournalFileBackend(str(self._journal), _Alone())
            self._file: Any = optuna.create_study(
                storage=storages.JournalStorage(backend),
                study_name="ftlab",
                directions=directions,
                load_if_exists=True,
            )
        # Proposals are kept in memory: only finished trials wait for the disk.
        self._study: Any = optuna.create_study(directions=directions)
        # Budgets may grow; what is searched may not change.
        digest = hashlib.sha256(self.said().encode()).hexdigest()
        another = self._file.user_attrs.get("declaration", digest) != digest
        # A search that was refused before it began leaves nothing to continue.
        if another and self._file.get_trials(deepcopy=False):
            raise UserError(f"--out {out}: holds another search; name another directory")
        with self._writing():
            self._file.set_user_attr("declaration", digest)

    def said(self) -> str:
        """Returns what is searched; a search goes on only where the same was searched before."""
        tuning = self._tuning
        said = repr([tuning.config, tuning.set, tuning.seed, *(each.text for each in tuning.constraints)])
        said += repr([(each.text, each.maximize) for each in tuning.objectives])
        return said + repr([(*vars(each).values(),)[:-1] for each in tuning.parameters])

    def expect(self, before: int) -> None:
        """Tells the reporter which trials there will be, after those that were ``before``."""
        # With a budget in minutes the number of trials is not known.
        last = self._tuning.runs if self._tuning.minutes is None else 0
        self._reporter.expect({f"trial {number}": 1.0 for number in range(before + 1, last + 1)})

    def begin_with(self, parameters: Mapping[str, str]) -> None:
        """Proposes these values first, in a search that has not tried them yet; called before `search`."""
        self._first.append(parameters)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turns errors of the journal in the block into a user's error."""
        try:
            yield
        except OSError as error:
            raise UserError(f"--out {self._journal}: cannot write: {error.strerror}") from None
        except json.JSONDecodeError:
            raise UserError(
                f"--out {self._journal}: damaged; remove it: the search then begins anew, with the results"
                " of all runs that are there"
            ) from None

    def search(self, at_once: int) -> Tuned:
        """Tries configurations until the budget is used up, ``at_once`` at a time.

        Raises:
            UserError: no configuration accepts a key or a value; the text says where that is.
        """
        self.check()
        default = self.tried([Trial(0, {})])[0]
        if not default.values:
            self._reporter.note(f"the default configuration: {default.error}")
        trials = self._resume()
        for each in self._first:
            self._study.enqueue_trial(self._numbers(each), skip_if_exists=True)
        self.expect(len(trials))
        ends = math.inf if self._tuning.minutes is None else time.monotonic() + self._tuning.minutes * 60
        while len(trials) < self._tuning.runs and time.monotonic() < ends:
            asked = self._ask(min(at_once, self._tuning.runs - len(trials)), len(trials))
            if not asked:
                break
            for (handle, _), done in zip(asked, self.tried([trial for _, trial in asked]), strict=True):
                self._tell(handle, done)
                trials.append(done)
        front = pareto(trials, self._tuning)
        return Tuned(
            self._tuning, default, trials, front, knee(front, self._tuning), importance(self._tuning, trials)
        )

    def check(self) -> None:
        """Refuses misspelt keys and values before any trial runs.

        A value may be valid only with some values of other parameters, so it is tried with several of those.
        """
        draw = random.Random(self._tuning.seed)
        path = self._tuning.path
        try:
            self._config({})
        except UserError as error:
            raise UserError(f"{place(path, declared(study_of(path), error))}: {error}") from None
        for each in self._tuning.parameters:
            for text in each.ends:
                first = None
                for turn in range(CHECKED_WITH):
                    others = [other for other in self._tuning.parameters if other is not each and turn]
                    chosen = {other.name: draw.choice(other.ends) for other in others}
                    try:
                        self._config({**chosen, each.name: text})
                        break
                    except UserError as error:
                        first = first or error
                else:
                    part = "key" if "unknown key" in str(first) else "choices" if each.choices else "range"
                    raise UserError(f"{place(path, f'parameter.{each.name}.{part}')}: {first}")

    def _sampler(self, settled: bool) -> Any:
        """Makes a sampler with a new seed for each proposal, so that a resumed search goes on as if it had
        not been stopped.
        """
        text = f"{self._tuning.seed} {self._asked}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
        if settled:
            return self._optuna.samplers.RandomSampler(seed=seed)
        return self._optuna.samplers.TPESampler(
            seed=seed,
            multivariate=True,
            group=True,
            constant_liar=True,
            n_startup_trials=max(min(10, self._tuning.runs // 4), 2),
        )

    def _ask(self, count: int, before: int) -> list[tuple[Any, Trial]]:
        """Returns at most ``count`` new trials, each with Optuna's handle; ``before`` is the number of
        earlier trials.
        """
        asked: list[tuple[Any, Trial]] = []
        repeats = 0
        while len(asked) < count and repeats < MOST_REPEATS:
            self._study.sampler = self._sampler(repeats >= RANDOM_AFTER)
            self._asked += 1
            handle = self._study.ask()
            trial = Trial(before + len(asked) + 1, self._parameters(handle))
            key = tuple(trial.parameters.items())
            if key in self._seen:
                self._study.tell(handle, state=self._optuna.trial.TrialState.FAIL)
                repeats += 1
                continue
            repeats = 0
            self._seen[key] = trial
            asked.append((handle, trial))
        return asked

    def _parameters(self, handle: Any) -> dict[str, str]:
        chosen: dict[str, str] = {}
        for each in self._tuning.parameters:
            if each.when is not None and not each.when({**dict.fromkeys(self._names()), **chosen}):
                continue
            if each.choices:
                value = handle.suggest_categorical(each.name, list(each.choices))
            elif each.whole:
                value = handle.suggest_int(each.name, int(each.low), int(each.high), log=each.log)
            else:
                value = handle.suggest_float(each.name, each.low, each.high, log=each.log)
            chosen[each.name] = each.text(value)
        return chosen

    def _numbers(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Returns values as the sampler knows them: choices as they are written, others as numbers."""
        found: dict[str, Any] = {}
        for each in self._tuning.parameters:
            if each.name in parameters:
                text = parameters[each.name].removesuffix(each.unit)
                found[each.name] = text if each.choices else int(text) if each.whole else float(text)
        return found

    def _names(self) -> list[str]:
        return [each.name for each in self._tuning.parameters]

    def _tell(self, handle: Any, done: Trial) -> None:
        state = self._optuna.trial.TrialState
        handle.set_user_attr("parameters", dict(done.parameters))
        handle.set_user_attr("violation", done.violation)
        if done.values:
            handle.set_constraint("violation", done.violation)
        handle.set_user_attr("error", done.error)
        handle.set_user_attr("asked", self._asked)
        if done.values:
            self._study.tell(handle, list(done.values), state=state.COMPLETE)
        else:
            self._study.tell(handle, state=state.FAIL)
        with self._writing():
            self._file.add_trial(self._study.get_trials(deepcopy=False)[handle.number])

    def _resume(self) -> list[Trial]:
        """Reads what an earlier command tried; unfinished trials are dropped."""
        found: list[Trial] = []
        for each in self._file.get_trials(deepcopy=False):
            self._study.add_trial(each)
            attributes = each.user_attrs
            self._asked = attributes["asked"]
            trial = Trial(
                len(found) + 1,
                attributes["parameters"],
                tuple(each.values or ()),
                attributes["violation"],
                attributes["error"],
                self._config(attributes["parameters"]) if each.values else None,
            )
            self._seen[tuple(trial.parameters.items())] = trial
            found.append(trial)
        return found

    def _config(self, parameters: Mapping[str, str]) -> Config:
        return config_of(self._tuning, parameters)

    def tried(self, asked: Sequence[Trial]) -> list[Trial]:
        """Runs the trials; returns them with their outcomes."""
        figure = study_of(self._tuning.path)
        runs: list[Run] = []
        errors: dict[int, str] = {}
        numbers: dict[str, int] = {}
        for trial in asked:
            try:
                config = self._config(trial.parameters)
            except UserError as error:
                errors[trial.number] = str(error)
                continue
            settings = json.loads(config.json())
            workload = settings.pop("workload")
            key = key_of(settings, workload, [config], figure)
            label = f"trial {trial.number}" if trial.number else "default"
            numbers[label] = trial.number
            runs.append(Run(figure, (label,), config, key, "", False, key))
        results: dict[str, Mapping[str, Any]] = {}

        def failed(each: Run, error: UserError | InternalError) -> None:
            for other in runs:
                if other.key == each.key:
                    errors[numbers[other.name]] = str(error)
            self._reporter.failed(each.name)

        run(runs, self._cache, self._reporter, self._executor, results.__setitem__, failed, expected=True)
        by_number = {numbers[each.name]: each for each in runs}
        done = []
        for trial in asked:
            own = by_number.get(trial.number)
            result = results.get(own.key) if own else None
            resolved = own.config if own else None
            done.append(
                self._judged(trial, result, resolved)
                if result is not None
                else Trial(trial.number, trial.parameters, (), 1.0, errors.get(trial.number, ""), resolved)
            )
        return done

    def _judged(self, trial: Trial, result: Mapping[str, Any], config: Config | None) -> Trial:
        names = names_of(result)
        values = [each.get.number(names) for each in self._tuning.objectives]
        if None in values:
            return Trial(trial.number, trial.parameters, (), 1.0, "no value", config)
        violated = math.fsum(violation(each, names) for each in self._tuning.constraints)
        known = tuple(value for value in values if value is not None)
        return Trial(trial.number, trial.parameters, known, violated, "", config)
