"""Where commands compute: --device, else MERCER_DEVICE, else this machine."""

import json

import pytest

from cli.commands import run
from places.engines.opaque import ENGINE
from reference.child import environment, run_python

COMPUTING = {
    "train": ["two", "model"],
    "predict": ["two", "two.model"],
    "tune": ["two"],
    "easy": ["two"],
    "plot": ["two", "two.model", "two.png"],
}


@pytest.mark.parametrize("command", COMPUTING)
def test_an_unknown_device_ends_a_command_before_it_reads_or_writes(command, two, folder, capsys):
    before = sorted(folder.iterdir())
    run(command, "--device", "abacus", *COMPUTING[command], code=1)
    printed, told = capsys.readouterr()
    assert printed == ""
    assert told.startswith(f"mercer {command}: error: device='abacus' is not known; use 'cpu', ")
    assert told.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_a_device_without_a_name_is_refused(two, capsys):
    run("train", "--device", "", "two", code=1)
    assert "device='' must be the name of a device" in capsys.readouterr().err


@pytest.fixture
def asked(monkeypatch):
    """What the engine of the tests was asked to make."""
    made = []
    for name in ("gram", "evaluation"):
        make = getattr(ENGINE, name)
        monkeypatch.setattr(type(ENGINE), name, lambda self, *given, n=name, m=make: made.append(n) or m(*given))
    return made


@pytest.mark.parametrize("model", ["two.model", "two.mercer"])
def test_training_and_predicting_go_where_they_are_sent(model, two, asked, capsys):
    run("train", "-q", "two", model)
    run("predict", "-q", "two", model)
    here = capsys.readouterr().out
    assert asked == []
    run("train", "-q", "--device", "opaque", "two", model)
    assert asked[0] == "gram"
    asked.clear()
    run("predict", "-q", "--device", "opaque", "two", model)
    assert asked == ["evaluation"]
    assert capsys.readouterr().out == here


def test_a_search_goes_there_too(two, asked, capsys):
    run("tune", "-log2c", "0,1,1", "-log2g", "-4,-3,1", "-q", "--device", "opaque", "two")
    assert "gram" in asked


CHILD = """
    import json, sys
    import mercer
    from mercer.cli.main import main
    codes = [main(["train", "-q", *more, "two"]) for more in ([], ["--device", "cpu"])]
    print(json.dumps([mercer.get_config()["device"], codes]))
    """


@pytest.mark.parametrize(("variable", "device", "codes"), [("abacus", "abacus", [1, 0]), ("", "cpu", [0, 0])])
def test_the_environment_says_what_holds_unless_an_option_does(variable, device, codes, two):
    told = run_python(CHILD, env=environment(MERCER_DEVICE=variable))
    assert json.loads(told.splitlines()[-1]) == [device, codes]
