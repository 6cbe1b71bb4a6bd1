"""LeaderElector: at most one of many candidates leads, if their clocks run at about the same rate.

A candidate trusts only observed changes: a lease is held until `lease_duration` has passed on the candidate's own clock
since the record last changed. The leader stops leading `renew_deadline` after its last successful renewal, which is
earlier. Not guaranteed: a leader notices the loss of its lease immediately. Therefore the leader's actions must be
idempotent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from pilothouse.client.clock import REAL_CLOCK, Clock, cancelled, done_within
from pilothouse.client.leaderelection.lease_lock import LeaderElectionRecord, LeaseLock
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.wait import jitter
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

JITTER_FACTOR = 1.2

Lead: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTimes:
    """Lease duration, time limit for renewals, and delay between attempts.

    >>> from pilothouse.client import ElectionTimes
    >>> ElectionTimes(lease_duration=60, renew_deadline=40, retry_period=5).lease_duration
    60
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("lease_duration must be greater than renew_deadline")
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            raise ValueError("renew_deadline must be greater than retry_period × 1.2")
        if self.retry_period <= 0 or self.lease_duration < 1:
            raise ValueError("retry_period must be positive and lease_duration at least a second")


class LeaderElector:
    """Candidate in an election for a lease. At most one candidate leads.

    >>> from pilothouse.client import LeaderElector, LeaseLock
    >>> async def lead() -> None:
    ...     print("leading")
    >>> lock = LeaseLock(client, namespace="default", name="my-controller", identity="me")
    >>> await LeaderElector(lock).run(lead)
    leading
    """

    def __init__(
        self,
        lock: LeaseLock,
        *,
        times: ElectionTimes = ElectionTimes(),  # noqa: B008  (immutable)
        coordinated: bool = False,
        release_on_cancel: bool = True,
        on_new_leader: Callable[[str], None] = lambda identity: None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """Create a candidate.

        With `coordinated`, the server chooses the leader: the elector never acquires a lease and only renews a lease
        assigned to it, until another holder is preferred. Combine with a LeaseCandidate.
        """
        self._lock = lock
        self._attempt = self._renew_assigned if coordinated else self._acquire_or_renew
        self._times = times
        self._release_on_cancel = release_on_cancel
        self._on_new_leader = on_new_leader
        self._clock = clock
        self._observed = LeaderElectionRecord()
        self._observed_at = clock.now()  # local time of the last observed change of the record
        self._reported = ""

    @property
    def leader(self) -> str:
        """Identity of the leader known to this candidate; "" if there is none."""
        return self._observed.holder_identity

    @property
    def is_leader(self) -> bool:
        """Whether this candidate is the leader, to its knowledge."""
        return self._observed.holder_identity == self._lock.identity

    async def run(self, lead: Lead) -> None:
        """Wait for election, call `lead`, and cancel it when the lease is lost.

        Returns when the lease was lost or `lead` returned; raises the exception of `lead`. The lease is released when
        the elector is cancelled or `lead` ends, so that other candidates need not wait for its expiry.
        """
        logger.info("attempting to acquire leader lease %s", self._lock.description)
        while not await self._try_acquire_or_renew():
            await self._clock.sleep(jitter(self._times.retry_period, JITTER_FACTOR))
        logger.info("successfully acquired lease %s", self._lock.description)
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._renew_until_lost())
        try:
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                leading.result()
        finally:
            await cancelled(leading)
            await cancelled(renewing)
            if self._release_on_cancel:
                await self._release()

    def check(self, tolerance: float = 0.0) -> None:
        """Health check: raises RuntimeError if this leader has not renewed for longer than the lease duration."""
        if self.is_leader and self._clock.now() - self._observed_at > self._times.lease_duration + tolerance:
            raise RuntimeError(f"failed election to renew leadership on lease {self._lock.description}")

    async def _renew_until_lost(self) -> None:
        deadline = self._clock.now() + self._times.renew_deadline
        while (left := deadline - self._clock.now()) > 0:
            # A hanging request must not extend the leadership.
            attempt = asyncio.ensure_future(self._try_acquire_or_renew())
            if await done_within(left, attempt, self._clock) and attempt.result():
                deadline = self._clock.now() + self._times.renew_deadline
            await self._clock.sleep(min(self._times.retry_period, deadline - self._clock.now()))
        logger.warning("failed to renew lease %s in time", self._lock.description)

    async def _try_acquire_or_renew(self) -> bool:
        try:
            acquired = await self._attempt()
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.info("cannot acquire or renew lease %s: %s", self._lock.description, error)
            acquired = False
        if self.leader != self._reported:
            self._reported = self.leader
            self._on_new_leader(self.leader)
        return acquired

    async def _acquire_or_renew(self) -> bool:
        if self.is_leader and self._is_lease_valid():
            try:
                await self._write(renewal_of=self._observed)
                return True
            except StatusError as error:
                logger.debug("cannot renew lease %s, reading it again: %s", self._lock.description, error)
        try:
            stored = await self._lock.get()
        except NotFound:
            record = self._new_record()
            await self._lock.create(record)
            self._observe(record)
            return True
        if stored != self._observed:
            self._observe(stored)
        if stored.holder_identity and not self.is_leader and self._is_lease_valid():
            return False
        await self._write(renewal_of=stored)
        return True

    async def _renew_assigned(self) -> bool:
        try:
            stored = await self._lock.get()
        except NotFound:
            return False
        if stored != self._observed:
            self._observe(stored)
        if not self._is_lease_valid() or not self.is_leader or stored.rest.get("preferredHolder"):
            return False
        await self._write(renewal_of=stored)
        return True

    async def _write(self, renewal_of: LeaderElectionRecord) -> None:
        """Write our record over a record that we hold or take over."""
        record = replace(self._new_record(), rest=renewal_of.rest)
        if self.is_leader:
            transitions, acquired = renewal_of.leader_transitions, renewal_of.acquire_time
            record = replace(record, leader_transitions=transitions, acquire_time=acquired)
        else:
            record = replace(record, leader_transitions=renewal_of.leader_transitions + 1)
        await self._lock.update(record)
        self._observe(record)

    def _new_record(self) -> LeaderElectionRecord:
        now = round(self._clock.wall(), 6)
        return LeaderElectionRecord(
            holder_identity=self._lock.identity,
            lease_duration_seconds=int(self._times.lease_duration),
            acquire_time=now,
            renew_time=now,
        )

    async def _release(self) -> None:
        if not self.is_leader:
            return
        now = round(self._clock.wall(), 6)
        try:
            stored = await self._lock.get()
            if stored.holder_identity != self._lock.identity:
                return
            released = replace(stored, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now)
            await self._lock.update(released)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.warning("failed to release lease %s: %s", self._lock.description, error)
        else:
            self._observe(released)

    def _is_lease_valid(self) -> bool:
        return self._observed_at + self._observed.lease_duration_seconds > self._clock.now()

    def _observe(self, record: LeaderElectionRecord) -> None:
        self._observed = record
        self._observed_at = self._clock.now()
