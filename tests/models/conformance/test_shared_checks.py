"""Every shared check finds the fault that it tests for, in every role, and passes sound models."""

import itertools

import broken_models
import pytest
from broken_models import ROLE_ACCESS, Broken

from hardlook.errors import ModelError
from hardlook.models.conformance import check_model, check_named
from hardlook.models.conformance.contracts import CONTRACTS
from hardlook.models.registry import find
from hardlook.models.roles import ROLES

PLANTED_ARGUMENTS = {
    "planted-encoder": {"context": 0.5, "turn": 0.5},
    "planted-text-encoder": {"forgetful": 0.5, "turn": 0.5},
    "planted-image-text-encoder": {"context": 0.5, "turn": 0.5},
    "planted-saliency": {"centre": 0.5, "faint": 0.5},
    "planted-segmenter": {"sibling": 0.5, "stranger": 0.5, "ragged": 0.5},
    "planted-instances": {"sibling": 0.5, "stranger": 0.5, "ragged": 0.5, "missed": 0.5},
    "planted-panoptic": {"sibling": 0.5, "stranger": 0.5, "ragged": 0.5, "missed": 0.5},
    "planted-one-shot": {"saliency": 0.5, "support_blind": 0.5, "ragged": 0.5},
    "planted-learner": {"context": 0.5, "noise": 0.5},
    "disc": {"fragility": 0.5, "blunt": 0.5},
    "planted-clicks": {"edge": 0.5, "loud": 0.5},
    "planted-users": {"clumsy": 0.5},
}

BATCHED = [role for role in ROLES if CONTRACTS[role].batched]

WITH_ARRAYS = [role for role in ROLES if role != "text-encoder"]


def failures(model_or_builder, role):
    return {finding.check: finding.message for finding in check_model(model_or_builder, role) if not finding.passed}


@pytest.mark.parametrize("name", PLANTED_ARGUMENTS)
def test_planted_models_keep_their_contract(name):
    [role] = find(name).card.roles
    for args in ({}, PLANTED_ARGUMENTS[name]):
        findings = check_named(name, role, args)
        assert [finding.line() for finding in findings if not finding.passed] == []
        assert {"members", "same again", "fresh instance", "order", "inputs untouched"} <= {f.check for f in findings}


@pytest.mark.parametrize("role", ROLES)
def test_an_unmodified_model_passes(role):
    assert failures(lambda: Broken(role, lambda model, inputs, answers: answers), role) == {}


@pytest.mark.parametrize("role", [role for role in WITH_ARRAYS if role != "few-shot-learner"])
def test_an_exception_becomes_a_finding(role):
    found = failures(Broken(role, broken_models.crash_on_small_images), role)
    assert "ValueError: too small for me" in found["tiny image"]
    assert "ordinary image" not in found


@pytest.mark.parametrize("role", BATCHED)
def test_a_missing_answer_is_caught(role):
    found = failures(Broken(role, broken_models.drop_last_answer), role)
    what = CONTRACTS[role].input_name
    assert "expected" in found[f"different {what} in one call"]


@pytest.mark.parametrize("role", BATCHED)
def test_an_answer_that_depends_on_the_batch_is_caught(role):
    assert "expected the same answer" in failures(Broken(role, broken_models.depend_on_batch_size), role)["one by one"]


@pytest.mark.parametrize("role", BATCHED)
def test_an_answer_that_depends_on_its_position_is_caught(role):
    assert "expected the same answer" in failures(Broken(role, broken_models.depend_on_position), role)["order"]


def test_a_click_model_with_a_memory_is_caught():
    assert (
        "expected the same answer"
        in failures(Broken("click-model", broken_models.repeat_previous_answer), "click-model")["order"]
    )


@pytest.mark.parametrize("role", ROLES)
def test_an_answer_that_changes_is_caught(role):
    assert "expected the same answer" in failures(Broken(role, broken_models.change_at_random), role)["same again"]


@pytest.mark.parametrize("role", ROLES)
def test_instances_that_differ_are_caught(role):
    numbers = itertools.count()
    found = failures(lambda: Broken(role, broken_models.depend_on_instance, number=next(numbers)), role)
    assert "expected the same answer" in found["fresh instance"]
    assert "same again" not in found


@pytest.mark.parametrize("role", WITH_ARRAYS)
def test_changed_inputs_are_caught(role):
    assert "changed by the call" in failures(Broken(role, broken_models.overwrite_inputs), role)["inputs untouched"]


@pytest.mark.parametrize("role", [role for role in ROLES if not role.endswith("encoder")])
def test_answers_that_change_afterwards_are_caught(role):
    assert (
        "expected the same answer"
        in failures(Broken(role, broken_models.overwrite_earlier_answers), role)["answers kept"]
    )


@pytest.mark.parametrize("role", BATCHED)
def test_a_model_that_fails_on_an_empty_batch_is_caught(role):
    assert (
        "IndexError: nothing to work on"
        in failures(Broken(role, broken_models.fail_on_empty_batch), role)["empty batch"]
    )


@pytest.mark.parametrize("role", ROLES)
def test_missing_members_are_named(role):
    [finding] = check_model(object(), role)
    method = "open" if role == "promptable-segmenter" else ROLE_ACCESS[role].method
    assert not finding.passed
    assert f"`{method}`" in finding.message


def test_a_constructor_that_fails_is_a_finding():
    def faulty():
        raise OSError("no weights")

    [finding] = check_model(faulty, "saliency")
    assert finding.line() == "FAIL construction: expected a model, got OSError: no weights"


@pytest.mark.parametrize(
    ("error", "words"),
    [(None, "got a model"), (RuntimeError("invalid"), "RuntimeError: invalid"), (ModelError("no-such-device?"), None)],
)
def test_an_impossible_device_must_be_named(error, words):
    class BrokenOnDevice(Broken):
        def __init__(self, device: str = "cpu") -> None:
            super().__init__("saliency", lambda model, inputs, answers: answers)
            if device != "cpu" and error is not None:
                raise error

    found = failures(BrokenOnDevice, "saliency")
    assert found == {} if words is None else words in found["device"]


def test_unknown_roles_are_refused():
    with pytest.raises(ModelError, match="no role 'painter'"):
        check_model(object(), "painter")
