"""What a program may choose, what is refused, and until when."""

from __future__ import annotations

import pytest

from hdphrs.choices import CORES_VARIABLE, Choices
from hdphrs.config import CONTEXTS_VARIABLE
from hdphrs.errors import UsageError

WRONG = "a whole number from 1 to 1024"


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> Choices:
    monkeypatch.delenv(CORES_VARIABLE, raising=False)
    return Choices()


def test_what_the_program_says_counts_before_the_environment(choices: Choices, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choices.value("cores", None) is None
    monkeypatch.setenv(CORES_VARIABLE, "3")
    assert choices.value("cores", None) == 3
    choices.configure({"cores": 2})
    assert choices.value("cores", None) == 2


@pytest.mark.parametrize("value", [0, -1, 1025, "2", 2.0, True, [2]])
def test_a_wrong_value_is_refused(choices: Choices, value: object) -> None:
    with pytest.raises(UsageError) as raised:
        choices.configure({"cores": value})
    assert str(raised.value) == f"configure: cores must be {WRONG}, not {value!r}"
    assert choices.value("cores", None) is None


@pytest.mark.parametrize("text", ["0", "two", "1.5", "-3", "99999", " ", "0x2"])
def test_a_wrong_variable_is_refused(choices: Choices, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CORES_VARIABLE, text)
    with pytest.raises(UsageError) as raised:
        choices.value("cores", None)
    assert str(raised.value) == f"HDPHRS_CORES is {text!r}; it must be {WRONG}"


def test_an_empty_variable_says_nothing(choices: Choices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CORES_VARIABLE, "")
    assert choices.value("cores", None) is None


def test_an_unknown_name_is_refused_and_what_came_with_it_too(choices: Choices) -> None:
    with pytest.raises(UsageError, match=r"configure: there is nothing named 'cors' to choose; there is: contexts, c"):
        choices.configure({"cores": 2, "cors": 3})
    assert choices.value("cores", None) is None


def test_after_the_run_has_begun_only_the_same_may_be_chosen(choices: Choices) -> None:
    choices.settle("cores", 4)
    choices.configure({"cores": 4})
    with pytest.raises(UsageError) as raised:
        choices.configure({"cores": 2})
    assert str(raised.value) == (
        "configure: cores=2 comes too late: this program's run has begun with cores=4; choose before the first spawn "
        "or Executor"
    )
    choices.unsettle()
    choices.configure({"cores": 2})
    assert choices.value("cores", None) == 2


def test_in_a_run_of_others_a_right_choice_has_no_effect_and_a_wrong_one_is_refused(choices: Choices) -> None:
    choices.settle("cores", 4)
    choices.leave_to_others()
    choices.configure({"cores": 2})
    assert choices.value("cores", None) is None
    with pytest.raises(UsageError):
        choices.configure({"cores": 0})


def test_contexts_are_chosen_by_a_word_or_a_variable(choices: Choices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTEXTS_VARIABLE, "0")
    assert choices.value("contexts", True) is False
    choices.configure({"contexts": True})
    assert choices.value("contexts", True) is True
    with pytest.raises(UsageError, match="contexts must be True or False"):
        choices.configure({"contexts": 1})


def test_a_wrong_word_for_contexts_is_refused(choices: Choices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTEXTS_VARIABLE, "off")
    with pytest.raises(UsageError, match="HDPHRS_CONTEXTS is 'off'; it must be True or False"):
        choices.value("contexts", True)
