"""Race the members of a portfolio: all networks grow one layer, and the better ones grow on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

from .._loo.follow import Stage
from .._models.model import Voter
from .data import Data
from .folds import Learnt
from .guest import fit_guest, refuse_rows
from .kernel import KernelSolved, fit_kernel_model
from .network import Growing, grow_to, prove_layers
from .settings import GuestFit, KernelFit, NetworkSettings, VoterSettings

# Below so many cells (rows times encoded columns, all members together) processes cost more than they save.
WORTH_PROCESSES = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A member before it is fitted."""

    name: str
    settings: VoterSettings
    learnt: Learnt
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """A member as far as it is fitted, and what leave-one-out says about it."""

    voter: Voter
    stages: tuple[Stage, ...]  # one for each layer; a kernel voter has one
    seconds: float
    fell_back: bool = False  # whether some system was numerically singular
    growing: Growing | None = None  # of a network
    guest: Any = None  # the parameters of a guest, as an estimator
    solved: KernelSolved | None = None  # how the system of a kernel was solved

    @property
    def best(self) -> int:
        """The number of layers with the smallest leave-one-out loss."""
        return 1 if self.growing is None else self.growing.best

    @property
    def chosen(self) -> Stage:
        """What leave-one-out says of the best depth."""
        return self.stages[self.best - 1]

    @property
    def kept(self) -> Voter:
        """The voter without the layers beyond the best depth."""
        return self.voter if self.growing is None else self.growing.network.prefix(self.best)

    @property
    def remembered(self) -> Any:
        """What the read-outs of `kept` were solved from; None if nobody asked for it."""
        return self.solved if self.growing is None else self.growing.remembered(self.best)


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work on one member."""

    number: int  # of the member
    n_layers: int  # how many layers the network has afterwards
    so_far: Progress | None = None
    optional: bool = True  # whether it may be left out when time is up


@dataclass(slots=True)
class Race:
    """The members, how far each of them is, and the means to go on."""

    data: Data
    members: Sequence[Member]
    n_jobs: int
    deadline: float = float("inf")  # by `time.time`, which processes share
    progress: dict[int, Progress] = field(default_factory=dict)

    def run(self, finalists: int | None, report: Callable[[Member, Progress], bool]) -> list[int]:
        """Fit the members; of the networks only so many grow beyond the first layer.

        `report` hears of each piece of work that is done, and may stop everything by returning True.
        Return the members that may get a weight: the kernel voters, and the networks that went on or, if
        everything stopped before, would have.
        """
        networks = [i for i, member in enumerate(self.members) if member.settings.grows]
        depth = {i: self.members[i].settings.depth for i in networks}
        races = finalists is not None and finalists < len(networks)
        jobs = [Job(i, 1 if races else depth.get(i, 1)) for i in range(len(self.members))]
        # The first network is fitted whatever the time, so that there is a model.
        must = networks[0] if networks else 0
        limited = self.deadline < float("inf")
        jobs[must] = Job(must, 1 if limited else jobs[must].n_layers, optional=False)
        stopped = self._work(self._in_order(jobs), report)
        best = sorted((i for i in networks if i in self.progress), key=self._loss)
        best = best[:finalists] if races else best
        if not stopped:
            deeper = [i for i in best if len(self.progress[i].stages) < depth[i]]
            self._work([Job(i, depth[i], self.progress[i]) for i in deeper], report)
        return sorted([*best, *(i for i in self.progress if not self.members[i].settings.grows)])

    def n_pieces(self, finalists: int | None) -> int | None:
        """Return how many pieces of work `run` will report; None if time may be up before."""
        if self.deadline < float("inf"):
            return None
        networks = [member.settings.depth for member in self.members if member.settings.grows]
        if finalists is None or finalists >= len(networks):
            return len(self.members)
        return len(self.members) + finalists if min(networks) > 1 else None

    def _loss(self, i: int) -> float:
        return self.progress[i].chosen.loss

    def _in_order(self, jobs: list[Job]) -> list[Job]:
        """Put the longest work first, which is the kernel's; with a time limit what must be done is first."""
        limited = self.deadline < float("inf")
        return sorted(
            jobs,
            key=lambda job: (
                limited and job.optional,
                self.members[job.number].settings.grows is not limited,
            ),
        )

    def _work(self, jobs: list[Job], report: Callable[[Member, Progress], bool]) -> bool:
        """Do some jobs; return True if the report stopped them."""
        results = self._results(jobs)
        for number, progress in results:
            if progress is not None:
                self.progress[number] = progress
                if report(self.members[number], progress):
                    with warnings.catch_warnings():  # joblib tells that work was cancelled, as was asked
                        warnings.simplefilter("ignore")
                        results.close()
                    return True
        return False

    def _results(self, jobs: list[Job]) -> Generator[tuple[int, Progress | None], None, None]:
        cells = self.data.rows.X.shape[0] * sum(self.members[job.number].learnt.inputs.width for job in jobs)
        if self.n_jobs == 1 or len(jobs) < 2 or cells < WORTH_PROCESSES:
            for job in jobs:
                yield do(self.data, self.members[job.number], job, self.deadline)
            return
        work = (delayed(do)(self.data, self.members[job.number], job, self.deadline) for job in jobs)
        yield from Parallel(n_jobs=min(self.n_jobs, len(jobs)), return_as="generator_unordered")(work)


def do(data: Data, member: Member, job: Job, deadline: float) -> tuple[int, Progress | None]:
    """Do a job, or if time is up and it may be left out, nothing."""
    if job.optional and time.time() > deadline:
        return job.number, None
    try:
        return job.number, fit_member(data, member, job.so_far, job.n_layers)
    except ValueError as error:
        raise ValueError(f"Member {member.name!r}: {error}") from error


def fit_member(data: Data, member: Member, so_far: Progress | None, n_layers: int) -> Progress:
    """Fit a member, a network to a number of layers: from nothing, or from where it paused."""
    began = time.perf_counter()
    done = FITS[type(member.settings)](data, member, so_far, n_layers)
    return replace(done, seconds=done.seconds + time.perf_counter() - began)


def _grow_network(data: Data, member: Member, so_far: Progress | None, n_layers: int) -> Progress:
    settings: Any = member.settings
    before = 0.0 if so_far is None else so_far.seconds
    begin = None if so_far is None else so_far.growing
    if begin is None:
        begin = prove_layers(data, settings, member.learnt, member.seed)
    growing = grow_to(data, begin, n_layers)
    return Progress(growing.network, growing.stages, before, any(map(bool, growing.fell_back)), growing)


def _fit_kernel(data: Data, member: Member, *_: Any) -> Progress:
    settings: Any = member.settings
    done = fit_kernel_model(data, settings, member.learnt, member.seed)
    return Progress(done.model, (done.stage,), 0.0, done.fell_back, solved=done.solved)


def _fit_guest(data: Data, member: Member, *_: Any) -> Progress:
    settings: Any = member.settings
    done = fit_guest(data, settings, member.learnt, member.seed)
    return Progress(done.model, (done.stage,), 0.0, guest=done.guest)


# What fits a member, by the kind of its settings.
FITS: Mapping[type[Any], Callable[..., Progress]] = {
    NetworkSettings: _grow_network,
    KernelFit: _fit_kernel,
    GuestFit: _fit_guest,
}
# What refuses rows that a kind of member cannot learn from, before anything is fitted.
REFUSALS: Mapping[type[Any], Callable[[str, Any, Data], None]] = {GuestFit: refuse_rows}
