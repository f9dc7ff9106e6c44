"""Compare a cell of the table with what is declared of it."""

import re
import warnings

from tools.answers import NoSuchTool
from tools.declaration import expected
from tools.known import KNOWN
from tools.rows import fitted, machine_in

# What Python, NumPy and scikit-learn say when a tool has not looked before.
RAW = ("broadcast", "out of bounds", "unexpected keyword", "should be a 1d array", "dimension", "unhashable")


def expect_declared(tools, row):
    """Fail with a line for each of the tools that is not as declared, or whose entry in KNOWN is out of date."""
    broken = []
    for tool in tools:
        found, known = judge(tool, row), findings_of(tool, row)
        if found is not None and not known:
            broken.append(f"{tool.key}: {found}")
        if found is None and known:
            broken.append(f"{tool.key}: as declared now, so that {known[0]} can leave KNOWN")
    assert not broken, f"{row.name}\n" + "\n".join(broken)


def findings_of(tool, row):
    """The findings in KNOWN that are about this cell."""
    return [one.finding for one in KNOWN if tool.key in one.tools.split() and one.who(row)]


def judge(tool, row):
    """What is wrong with a cell, in a line; None where it is as declared."""
    refusal = expected(tool, row)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tool.check(row)
    except AssertionError as error:
        return f"wrong: {' '.join(str(error).split())[:300]}"
    except Exception as error:
        return judge_refusal(tool, row, refusal, error)
    return None if refusal is None else f"declared as refused ({refusal.why}), but it works"


def judge_refusal(tool, row, refusal, error):
    text = f"{type(error).__name__}: {error}"[:400]
    if refusal is None:
        return f"declared to work, but {text}"
    if refusal.absent:
        named = isinstance(error, NoSuchTool) or any(f"'{name}'" in text for name in methods_of(tool))
        return None if isinstance(error, AttributeError) and named else f"declared as absent, but {text}"
    if not isinstance(error, ValueError | TypeError):
        return f"a raw exception, {text}"
    own = text.replace(tool.key, "")  # a tool's name may hold such a word
    if raw := [words for words in RAW if words in own]:
        return f"a raw exception, by its words {raw}, {text}"
    if not re.search(refusal.says, str(error)):
        return f"refused, but without saying {refusal.says!r}: {text}"
    if not any(name.lower() in str(error).lower() for name in tool.names):
        return f"refused, but without naming {tool.names}: {text}"
    if not any(re.search(one, str(error)) for one in ([refusal.about] if refusal.about else subjects(row))):
        return f"refused, but without naming the estimator, its kernel or a parameter: {text}"
    return None


def methods_of(tool):
    """The methods that a tool cannot do without."""
    others = {"calibrate_weights": ["calibrate"], "of_class": ["explain"], "forget": ["forget", "partial_fit"]}
    return others.get(tool.key, [tool.key])


def subjects(row):
    """What a refusal may name as being in the way: the estimator, the machine inside, its kernel, a parameter."""
    model = fitted(row)
    machine = machine_in(model)
    names = {type(model).__name__, type(machine).__name__}
    names |= {repr(machine.kernel_)} if hasattr(machine, "kernel_") else set()
    return [rf"(?<!\w){re.escape(name)}(?!\w)" for name in names] + [
        rf"\b{name}=" for name in machine.get_params(deep=False)
    ]
