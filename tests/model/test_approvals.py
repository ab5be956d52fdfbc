"""The rules of approvals: what an answer covers, and which answers are still possible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Ambiguous, NotFound, NotNow
from holdfast.model import approvals
from holdfast.model.approvals import SCOPES, ApprovalRecord, Scope, State
from holdfast.records import replace

NOW = 1000.0
KEEP = 60.0

REQUEST = ApprovalRecord(
    "appr_00000000000a",
    NOW,
    "s",
    "local",
    "start",
    "proc_1",
    "git push -f",
    "/",
    "f",
    "rule",
    "why",
    expires_at=NOW + KEEP,
)

texts = st.dictionaries(st.sampled_from(["command", "cwd", "backend"]), st.text(max_size=5))
scopes = st.sampled_from(SCOPES)


def approved(scope: Scope) -> ApprovalRecord:
    return approvals.decided(REQUEST, "approved", scope, "me", NOW, KEEP)


@given(texts, texts)
def test_a_fingerprint_is_of_exactly_this(one: dict[str, str], other: dict[str, str]) -> None:
    assert (approvals.fingerprint(one) == approvals.fingerprint(other)) == (one == other)


@given(scopes, st.sampled_from(["f", "other"]), st.sampled_from(["s", "other"]))
def test_what_an_answer_covers(scope: Scope, wanted: str, session: str) -> None:
    covered = approvals.covers(approved(scope), wanted, session, "proc_9", NOW)
    assert covered == (wanted == "f" and (session == "s" or scope == "always"))


@given(st.sampled_from(["pending", "denied", "expired", "withdrawn"]), scopes)
def test_nothing_but_a_yes_covers_anything(state: State, scope: Scope) -> None:
    assert not approvals.covers(replace(REQUEST, state=state, scope=scope), "f", "s", "proc_1", NOW)


def test_an_approval_for_once_is_valid_for_one_use_of_its_claimant() -> None:
    claimed = approvals.claimed(approved("once"), "proc_1", NOW, KEEP)
    assert approvals.covers(claimed, "f", "s", "proc_1", NOW), "the same deed, asked for again after a crash"
    assert not approvals.covers(claimed, "f", "s", "proc_2", NOW)
    assert not approvals.covers(approvals.spent(claimed, NOW), "f", "s", "proc_1", NOW)
    assert approvals.covers(approvals.released(claimed), "f", "s", "proc_2", NOW)


def test_once_does_not_wait_for_ever() -> None:
    assert not approvals.covers(approved("once"), "f", "s", "proc_1", NOW + KEEP)
    assert approvals.covers(approved("session"), "f", "s", "proc_1", NOW + 10 * KEEP)


@given(st.sampled_from(["denied", "expired", "withdrawn"]), scopes)
def test_a_no_is_final(state: State, scope: Scope) -> None:
    over = replace(REQUEST, state=state)
    with pytest.raises(NotNow):
        approvals.decided(over, "approved", scope, "me", NOW, KEEP)


@given(scopes)
def test_a_yes_can_be_taken_back_until_it_is_used(scope: Scope) -> None:
    assert approvals.decided(approved(scope), "denied", None, "me", NOW, KEEP).state == "denied"
    claimed = approvals.claimed(approved("once"), "proc_1", NOW, KEEP)
    assert approvals.decided(claimed, "denied", None, "me", NOW, KEEP).state == "denied", "it may not have been used"
    with pytest.raises(NotNow, match="is used"):
        approvals.decided(approvals.spent(claimed, NOW), "denied", None, "me", NOW, KEEP)


def test_what_can_still_be_used_has_an_end_and_what_was_used_has_none() -> None:
    claimed = approvals.claimed(approved("once"), "proc_1", NOW + 5, KEEP)
    assert approvals.due_at(REQUEST) == approvals.due_at(approved("once")) == NOW + KEEP
    assert approvals.due_at(claimed) == NOW + 5 + KEEP
    assert not approvals.covers(claimed, "f", "s", "proc_1", NOW + 5 + KEEP)
    over = (approved("session"), approvals.spent(claimed, NOW), replace(REQUEST, state="denied"))
    assert [approvals.due_at(one) for one in over] == [None] * 3


def test_the_same_answer_again_changes_nothing() -> None:
    once = approved("once")
    assert approvals.decided(once, "approved", "once", "other", NOW + 1, KEEP) is once
    with pytest.raises(NotNow):
        approvals.decided(once, "approved", "always", "me", NOW, KEEP)


def test_ids_and_their_beginnings() -> None:
    other = replace(REQUEST, id="appr_00000000000b")
    assert approvals.identify(other.id, [REQUEST, other]) is other
    assert approvals.identify("appr_0000", [REQUEST]) is REQUEST
    for text in ("appr_000", "", "a", "appr_1111"):
        with pytest.raises(NotFound):
            approvals.identify(text, [REQUEST])
    with pytest.raises(Ambiguous):
        approvals.identify("appr_0000", [REQUEST, other])
