"""Reading and writing LIBSVM text: scikit-learn's reader is the truth, and bad lines are named."""

import bz2
import gzip
import io
import locale
import lzma
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, make_classification

from mercer.files.libsvm_text import TextFormatError, read_labelled_text, read_libsvm, write_libsvm


def parsed(text, **options):
    return read_libsvm(io.BytesIO(text.encode()), **options)


def assert_equal(a, b):
    (X, y), (Z, t) = a, b
    assert X.shape == Z.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(Z, name))
    np.testing.assert_array_equal(y, t)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_agrees_with_scikit_learn(tmp_path, threads):
    X, y = make_classification(3000, 30, random_state=0)
    X[np.abs(X) < 0.5] = 0
    path = tmp_path / "data.txt"
    dump_svmlight_file(X, np.where(y, 1, -1), str(path), zero_based=False)
    assert path.stat().st_size > 1_000_000  # several blocks
    assert_equal(read_libsvm(path, n_jobs=threads), load_svmlight_file(str(path), zero_based=False))


def test_what_the_format_allows():
    X, y = parsed("+1 1:0.5 3:-2e-1\n-1\t2:.5 \r\n1.5\n# a comment: 1:2\n2 3:1 # another: 5:5\n0 1:0 2:+3")
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -0.2], [0, 0.5, 0], [0, 0, 0], [0, 0, 1], [0, 3, 0]])
    np.testing.assert_array_equal(y, [1, -1, 1.5, 2, 0])
    assert X.nnz == 6  # an explicit zero is kept, as LIBSVM keeps it
    assert X.indices.dtype == X.indptr.dtype == np.int32


def test_no_rows_and_no_features():
    assert parsed("")[0].shape == (0, 0)
    assert parsed("1\n-1\n")[0].shape == (2, 0)
    assert parsed("1\n-1\n", n_features=4)[0].shape == (2, 4)


def test_indices_from_zero():
    text = "1 0:1 1:4\n2 0:2 1:6\n"
    np.testing.assert_array_equal(parsed(text, first_index=0)[0].toarray(), [[1, 4], [2, 6]])
    with pytest.raises(TextFormatError, match="uses index 0, but indices count from 1: add 1 to every index"):
        parsed(text)
    with pytest.raises(ValueError, match="first_index=2 must be 0 or 1"):
        parsed(text, first_index=2)


def test_queries():
    text = b"3 qid:1 1:1 # 1A\n2 qid:1 2:1\n1 qid:-7\n"
    read = read_labelled_text(io.BytesIO(text))
    np.testing.assert_array_equal(read.queries, [1, 1, -7])
    np.testing.assert_array_equal(read.X.toarray(), [[1, 0], [0, 1], [0, 0]])
    X, y, queries = read_libsvm(io.BytesIO(text), query_id=True)
    np.testing.assert_array_equal(X.toarray(), read.X.toarray())
    np.testing.assert_array_equal(y, read.y)
    np.testing.assert_array_equal(queries, read.queries)
    np.testing.assert_array_equal(
        read_labelled_text(io.BytesIO(b"1 qid:-999999999999999999 1:1\n")).queries, [-(10**18) + 1]
    )
    with pytest.raises(ValueError, match=r"has no qid: fields"):
        read_libsvm(io.BytesIO(b"1 1:2\n"), query_id=True)
    with pytest.raises(ValueError, match=r"has qid: fields, .*query_id=True\) returns them"):
        read_libsvm(io.BytesIO(text))
    with pytest.raises(TextFormatError, match="1 of 2 lines have a qid:"):
        parsed("1 qid:1 1:1\n1 1:1\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n1 1:nan\n", r":2:5: the value 'nan' is not a finite decimal number"),
        ("1 1:1\n1 1:-inf\n", r":2:5: the value '-inf' is not a finite"),
        ("inf 1:1\n", r":1:1: the label 'inf' is not a finite"),
        ("yes 1:1\n", r":1:1: the label 'yes'"),
        ("1 1:1\n\n1 1:1\n", r":2:1: the line is empty"),
        ("1 3:1 2:1\n", r":1:7: indices must ascend, but 2 follows 3"),
        ("1 1:1 1:2\n", r":1:7: indices must ascend, but 1 follows 1"),
        ("1 1:1e999\n", r":1:5: the value '1e999' overflows float64"),
        ("1 4294967297:1\n", r":1:3: index '4294967297:1' is larger than 2147483647"),
        ("1 -1:1\n", r":1:3: expected index:value, found '-1:1'"),
        ("1 1;1\n", r":1:3: expected index:value, found '1;1'"),
        ("1 1:0,5\n", r":1:6: expected a blank after the value, found ',5'"),
        ("1,2 1:1\n", r":1:2: expected a blank after the label, found ',2'"),
        ("1 qid:1234567890123456789 1:1\n", r":1:3: the query 'qid:1234567890123456789' has more than 18 digits"),
        ("1 1:0x10\n", r":1:6: expected a blank after the value"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(TextFormatError, match=message) as error:
        read_libsvm(path)
    assert str(error.value).startswith(str(path))


def test_the_line_number_counts_over_blocks(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("1 1:0.25 2:0.5\n" * 100_000 + "1 2:1 1:2\n" + "1 1:x\n" * 1000)
    for threads in (1, 3):
        with pytest.raises(TextFormatError, match=":100001:7: indices must ascend"):
            read_libsvm(path, n_jobs=threads)


def test_too_many_features():
    with pytest.raises(ValueError, match="uses index 5, but n_features=4 was given"):
        parsed("1 5:1\n", n_features=4)


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)])
def test_compressed(tmp_path, suffix, opener):
    path = tmp_path / f"data.txt{suffix}"
    with opener(path, "wb") as file:
        file.write(b"1 2:0.5\n")
    np.testing.assert_array_equal(read_libsvm(path)[0].toarray(), [[0, 0.5]])


def test_text_files_and_missing_files(tmp_path):
    with pytest.raises(TypeError, match="binary mode"):
        read_libsvm(io.StringIO("1 1:1\n"))
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "none")


@pytest.mark.skipif(sys.platform == "win32", reason="locale names")
def test_a_locale_with_decimal_commas():
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
            break
        except locale.Error:
            continue
    else:
        pytest.skip("no locale with decimal commas is installed")
    try:
        assert parsed("1 1:0.5 2:1.23456789012345678901234\n")[0].data.tolist() == [0.5, 1.2345678901234567]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


tables = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(st.just(0.0), st.floats(allow_nan=False, allow_infinity=False)),
)


@given(X=tables, sparse=st.booleans(), zeros=st.booleans(), data=st.data())
def test_what_is_written_is_read(X, sparse, zeros, data):
    y = data.draw(hnp.arrays(np.float64, X.shape[0], elements=st.floats(allow_nan=False, allow_infinity=False)))
    file = io.BytesIO()
    write_libsvm(sp.csr_array(X) if sparse else X, y, file, zeros=zeros)
    Z, t = parsed(file.getvalue().decode(), n_features=X.shape[1])
    np.testing.assert_array_equal(Z.toarray(), X)
    np.testing.assert_array_equal(t, y)
    if zeros:
        assert Z.nnz == X.size


def test_scikit_learn_reads_what_is_written(tmp_path):
    X, y = make_classification(50, 6, random_state=1)
    write_libsvm(X, y, tmp_path / "data.txt")
    Z, t = load_svmlight_file(str(tmp_path / "data.txt"), zero_based=False)
    np.testing.assert_array_equal(Z.toarray(), X)
    np.testing.assert_array_equal(t, y)
    assert (tmp_path / "data.txt").read_text().startswith("0 1:" if y[0] == 0 else "1 1:")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0]], ["a"], "the format has no class names"),
        ([[np.nan]], [1], "must be finite"),
        ([[1.0]], [1, 2], "one number for each of 1 rows"),
        ([1.0], [1], "table of rows and columns"),
    ],
)
def test_what_cannot_be_written(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_libsvm(X, y, tmp_path / "data.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_byte_order_mark_is_skipped(tmp_path):
    text = b"1 1:2\n-1 2:3\n"
    assert_equal(read_libsvm(io.BytesIO(b"\xef\xbb\xbf" + text)), read_libsvm(io.BytesIO(text)))
    with pytest.raises(TextFormatError, match=r"text:1:3: expected index:value, found 'x'"):
        read_libsvm(io.BytesIO(b"\xef\xbb\xbf1 x\n"))
    with pytest.raises(TextFormatError, match="1:1"):  # in no other place
        read_libsvm(io.BytesIO(b"\xef\xbb\xbf\xef\xbb\xbf1 1:2\n"))
