"""Which process is meant."""

from __future__ import annotations

import pytest

from holdfast.errors import Ambiguous, BadValue, NotFound
from holdfast.model.process import HeldProcess
from holdfast.model.process_rules import identify
from tests.model.made import ended, process

ONE = process(0xABCD00000001)
TWO = process(0xABCD00000002)
OTHER = process(0x123400000000, name="web")
ALL = {one.id: one for one in (ONE, TWO, OTHER)}


@pytest.mark.parametrize("text", [OTHER.id, "proc_1234", "1234", "123400", "web"])
def test_an_id_a_prefix_or_a_name_will_do(text: str) -> None:
    assert identify(text, ALL) is OTHER


def test_a_prefix_that_fits_several_names_them() -> None:
    with pytest.raises(Ambiguous) as refused:
        identify("abcd", ALL)
    assert ONE.id in refused.value.message
    assert TWO.id in refused.value.message


@pytest.mark.parametrize("text", ["proc_ffffffffffff", "ffff", "nobody", "proc_123", "123"])
def test_a_text_that_fits_no_process_is_not_found(text: str) -> None:
    with pytest.raises((NotFound, BadValue)):
        identify(text, ALL)


@pytest.mark.parametrize("text", ["", "a b", "../../etc", "\0", "x" * 1000, "*"])
def test_a_text_that_is_neither_id_nor_name_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        identify(text, ALL)


def test_a_name_means_the_running_one_before_older_and_younger_ended_ones() -> None:
    bearers: list[HeldProcess] = [ended(1, 1.0, name="web"), process(2, name="web"), ended(3, 4.0, name="web")]
    assert identify("web", {one.id: one for one in bearers}) is bearers[1]


def test_without_a_running_one_it_means_the_last() -> None:
    bearers = [ended(1, 1.0, name="web"), ended(3, 4.0, name="web")]
    assert identify("web", {one.id: one for one in bearers}) is bearers[1]


def test_a_name_that_looks_like_a_prefix_is_a_name_first() -> None:
    named = process(7, name="abcd")
    assert identify("abcd", {**ALL, named.id: named}) is named


NAMED = {
    one.id: one for one in (process(1, name="web-server"), process(2, name="worker-1"), process(3, name="worker-2"))
}


@pytest.mark.parametrize("text", ["we", "web", "web-serve"])
def test_the_beginning_of_one_name_identifies_it(text: str) -> None:
    assert identify(text, NAMED).meta.name == "web-server"


def test_the_beginning_of_several_names_is_refused_and_names_them() -> None:
    with pytest.raises(Ambiguous) as refused:
        identify("worker", NAMED)
    assert "worker-1" in refused.value.message and "worker-2" in refused.value.message


def test_a_whole_name_wins_over_a_longer_one_that_begins_with_it() -> None:
    web = process(4, name="web")
    assert identify("web", {**NAMED, web.id: web}) is web


def test_the_beginning_of_a_name_that_several_processes_had_means_the_running_one() -> None:
    bearers = [ended(1, 1.0, name="web"), process(2, name="web"), ended(3, 4.0, name="web")]
    assert identify("we", {one.id: one for one in bearers}) is bearers[1]


def test_the_beginning_of_an_id_and_of_a_name_of_two_processes_is_refused() -> None:
    named = process(7, name="1234-jobs")
    with pytest.raises(Ambiguous) as refused:
        identify("1234", {**ALL, named.id: named})
    assert OTHER.id in refused.value.message and "1234-jobs" in refused.value.message
