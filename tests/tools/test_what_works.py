"""Every public estimator × every tool: each cell is right against a truth of its own, or refused in words.

`declaration` says which; docs/what_works_where.md is made from it (`python tests/tools/page.py`). The columns of
engines are tested in tests/places/engines.
"""

from dataclasses import replace

import pytest

from mercer.estimators.fitting.mixins import ClassifierMethods, ExplainMethods, MachineMethods, RegressorMethods
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.files.liblinear_estimator import liblinear_from_estimator
from mercer.files.libsvm_estimator import libsvm_from_estimator
from tools import model_tools, page
from tools.answers import ROWS as ASKED
from tools.declaration import SECTIONS, TOOLS, expected
from tools.file_tools import c_text, compile_c, expect_outputs, has_compiler
from tools.judge import expect_declared, findings_of, judge
from tools.rows import ROWS, Row, fitted, public_estimators

pytestmark = pytest.mark.filterwarnings("ignore")


def test_every_public_estimator_has_a_row():
    missing = set(public_estimators()) - {row.estimator for row in ROWS}
    assert not missing, f"{sorted(missing)} need a row in tests/tools/rows.py"


def public_methods(cls):
    return {name for name in vars(cls) if name[0] != "_" and callable(getattr(cls, name))}


def test_every_method_of_machines_has_a_column_and_stands_on_models_around_them():
    methods = set().union(*map(public_methods, (ExplainMethods, MachineMethods, ClassifierMethods, RegressorMethods)))
    assert "reasons" in methods
    missing = methods - set(TOOLS)
    assert not missing, f"{sorted(missing)} need a Tool in tests/tools/declaration.py (docs/add_a_tool.md)"
    missing = methods - set(dir(ModelMethods))
    assert not missing, f"{sorted(missing)} need a method of ModelMethods (docs/add_a_tool.md)"


def test_rows_have_names_of_their_own():
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("section", [section for section in SECTIONS if section != "Engines"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_tool_is_right_or_refuses_in_words(row, section):
    expect_declared([tool for tool in SECTIONS[section] if tool.key != "onnx"], row)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_onnx_is_right_or_refuses_in_words(row):
    pytest.importorskip("onnxruntime")
    expect_declared([TOOLS["onnx"]], row)


def rows_that_work(key):
    return [row for row in ROWS if expected(TOOLS[key], row) is None and not findings_of(TOOLS[key], row)]


@pytest.mark.skipif(not has_compiler(), reason="there is no gcc to compile the files with")
def test_c_files_answer_as_the_models_do(tmp_path):
    """All rows in one library, since a compiler takes longer to start than to compile them."""
    rows = {f"m{k}": row for k, row in enumerate(rows_that_work("c"))}
    assert len(rows) > 60
    files = compile_c({name: c_text(row, name) for name, row in rows.items()}, tmp_path)
    for name, row in rows.items():
        decision, label = files[name](ASKED)
        try:
            expect_outputs(row, fitted(row), decision, label)
        except AssertionError as error:
            raise AssertionError(f"{row.name}: {error}") from error


@pytest.mark.parametrize(
    ("name", "write"),
    [("SVC", libsvm_from_estimator), ("LinearSVC", liblinear_from_estimator)],
    ids=["LIBSVM", "LIBLINEAR"],
)
def test_files_that_know_integers_refuse_strings_as_classes(name, write):
    row = next(row for row in ROWS if row.name == name)
    with pytest.raises((TypeError, ValueError), match=r"LIB(SVM|LINEAR).*(integer|yes|no)"):
        write(fitted(row))


@pytest.mark.thorough
@pytest.mark.parametrize("row", rows_that_work("leave_one_out"), ids=str)
def test_every_sample_left_out_is_a_refit(row):
    model_tools.leave_one_out(row, every=1)


# --- the table notices ------------------------------------------------------------------------------------------------


def plain_row():
    return next(row for row in ROWS if row.name == "SVC")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("kernel"), "declared to work, but KeyError"),
        (AttributeError("'SVC' object has no attribute 'kernel_'"), "declared to work"),
        (AssertionError("off by 0.1"), "wrong: off by 0.1"),
    ],
)
def test_a_cell_that_breaks_is_noticed(error, words):
    def broken(row: Row) -> None:
        raise error

    assert words in judge(replace(TOOLS["explain"], check=broken), plain_row())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("operands could not be broadcast together", "a raw exception"),
        ("LIBLINEAR has LinearSVC", "without naming the estimator"),
        ("LIBLINEAR has LinearSVC, no SVC", None),
        ("LIBLINEAR has LinearSVC, no SVC: dimension 3", "by its words ['dimension']"),
        ("it has LinearSVC, no SVC", "without naming ('LIBLINEAR',)"),
        ("LIBLINEAR has other machines than SVC", "without saying"),
    ],
)
def test_a_refusal_without_its_words_is_noticed(text, words):
    def refuse(row: Row) -> None:
        raise TypeError(text)

    found = judge(replace(TOOLS["liblinear"], check=refuse), plain_row())
    assert found is None if words is None else words in found


def test_a_refusal_that_is_none_is_noticed():
    assert "but it works" in judge(replace(TOOLS["liblinear"], check=lambda row: None), plain_row())


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not page.PAGE.parent.is_dir(), reason="the documentation lies beside a checkout only")
def test_the_page_is_made_from_the_declaration():
    """`python tests/tools/page.py` writes it."""
    assert page.PAGE.read_text(encoding="utf-8") == page.text()
