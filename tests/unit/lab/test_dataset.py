"""Datasets round-trip through files, and errors name file and line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from support.small_dataset import CORPUS, QRELS, QUERIES, write
from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import (
    NO_STRATUM,
    Dataset,
    Document,
    DocumentLink,
    Judgement,
    Query,
)
from trivet.lab.datasets.plain_layout import house, load, save


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidInput) as refused:
        load(folder)
    return str(refused.value)


def test_load_documents_queries_and_grades(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "fruit"))
    assert dataset.name == "fruit"
    assert dataset.documents == (Document(id="a", text="apples"), Document(id="b", text="pears"))
    assert dataset.queries[0] == Query(id="q1", text="fruit", stratum="exact")
    assert dataset.grades == {"q1": {"a": 2, "b": 0}, "q2": {"b": 1}}
    assert dataset.strata == {NO_STRATUM: ("q2",), "exact": ("q1",)}


def test_dataset_without_strata(tmp_path: Path) -> None:
    queries = [{"id": "q1", "text": "fruit"}, {"id": "q2", "text": "pear"}]
    assert load(write(tmp_path, queries=queries)).strata == {}


@pytest.mark.parametrize("compress", [False, True])
def test_saved_dataset_keeps_fingerprint(tmp_path: Path, compress: bool) -> None:
    document = Document(
        id="a",
        text="Äpfel\u2028und Birnen\n",
        title="Obst",
        scope="user/project",
        created_at="2026-03-01T09:30:00Z",
        importance=0.25,
        tags=("fruit",),
        category="facts",
        expanded_keywords=("pome",),
        sensitive=True,
        links=(DocumentLink(kind="see-also", to="b"),),
    )
    dataset = Dataset(
        name="kept",
        documents=(document, Document(id="b", text="pears")),
        queries=(Query(id="q", text="?", scope="user", stratum="exact"),),
        judgements=(Judgement(query="q", document="a", grade=3),),
    )
    save(dataset, tmp_path / "kept", compress=compress)
    assert load(tmp_path / "kept") == dataset
    assert load(tmp_path / "kept").fingerprint == dataset.fingerprint


def test_saving_again_leaves_one_form_of_each_file(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "given"))
    for compress in (True, False, True):
        save(dataset, tmp_path / "saved", compress=compress)
        assert len(list((tmp_path / "saved").iterdir())) == 3
        assert load(tmp_path / "saved").fingerprint == dataset.fingerprint


def test_fingerprint_depends_on_content_not_form(tmp_path: Path) -> None:
    plain = load(write(tmp_path / "plain"))
    spaced = '{ "text": "apples",  "id": "a" }\r\n\r\n{"id":"b","text":"pears"}'
    assert load(write(tmp_path / "spaced", corpus=spaced)).fingerprint == plain.fingerprint
    assert (
        load(write(tmp_path / "headed", qrels="query\tdocument\tgrade\n" + QRELS)).fingerprint
        == plain.fingerprint
    )
    other = load(write(tmp_path / "other", qrels=QRELS.replace("\t2", "\t3")))
    assert other.fingerprint != plain.fingerprint


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for path in folder.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load(folder).judgements) == 3


@pytest.mark.parametrize("name", ["corpus", "queries", "qrels"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    message = refusal(write(tmp_path, **{name: None}))
    assert str(tmp_path / name) in message
    assert "no such file" in message


def test_missing_folder_is_named(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nowhere")


def test_two_forms_of_one_file_are_rejected(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "qrels.tsv.gz").write_bytes(gzip.compress(QRELS.encode()))
    assert "Remove one of the two" in refusal(folder)


def test_truncated_gzip_file_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, qrels=None)
    (folder / "qrels.tsv.gz").write_bytes(gzip.compress(QRELS.encode())[:-6])
    assert "qrels.tsv.gz: not a complete gzip file" in refusal(folder)


@pytest.mark.parametrize("name", ["corpus.jsonl", "qrels.tsv"])
def test_invalid_utf8_error_names_line(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path)
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(lines[0] + lines[1].replace(b"b", b"\xff") + b"".join(lines[2:]))
    assert f"{name}:2: it is not valid UTF-8" in refusal(folder)


A, B = CORPUS
FRUIT, PEAR = QUERIES


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"corpus": '{"id": "a", "text": "apples"}\n{"id": '},
            "corpus.jsonl:2: Input data was truncated",
        ),
        ({"corpus": '[{"id": "a"}]'}, "corpus.jsonl:1: Expected object, got array"),
        (
            {"corpus": '{"id": "a", "text": "t", "importance": NaN}'},
            "corpus.jsonl:1: JSON is malformed",
        ),
        ({"corpus": ""}, "corpus.jsonl: there is no document"),
        ({"corpus": [A, {"id": "b"}]}, "corpus.jsonl:2: the line lacks the required field text"),
        ({"corpus": [A, {"id": "b", "text": " "}]}, "corpus.jsonl:2: text: the text is empty"),
        ({"corpus": [A, {**B, "id": ""}]}, "corpus.jsonl:2: id: "),
        (
            {"corpus": [A, {**B, "id": "b b"}]},
            "corpus.jsonl:2: id: the name must not be empty or contain spaces",
        ),
        ({"corpus": [A, {**B, "id": 7}]}, "corpus.jsonl:2: id: expected str, got int"),
        (
            {"corpus": [A, {**B, "heading": "x"}]},
            "corpus.jsonl:2: the line contains unknown field heading. Known",
        ),
        (
            {"corpus": [A, {**B, "importance": 1.5}]},
            "corpus.jsonl:2: importance: expected float <= 1.0",
        ),
        (
            {"corpus": [A, {**B, "created_at": "May"}]},
            "corpus.jsonl:2: created_at: 'May' is not a time",
        ),
        ({"corpus": [A, {**B, "scope": "a//b"}]}, "corpus.jsonl:2: scope: "),
        (
            {"corpus": [A, {**B, "links": [{"kind": "see-also", "to": "c"}]}]},
            "corpus.jsonl:2: links: there is no",
        ),
        ({"corpus": [A, B, A]}, "corpus.jsonl:3: id 'a' is taken by line 1"),
        ({"queries": ""}, "queries.jsonl: there is no query"),
        ({"queries": [FRUIT, FRUIT]}, "queries.jsonl:2: id 'q1' is taken by line 1"),
        ({"queries": [FRUIT, {**PEAR, "stratum": ""}]}, "queries.jsonl:2: stratum: "),
        ({"queries": [FRUIT, {**PEAR, "text": ""}]}, "queries.jsonl:2: text: "),
        (
            {"queries": [FRUIT, PEAR, {"id": "q3", "text": "?"}]},
            "queries.jsonl:3: query 'q3' has no relevant document",
        ),
        ({"qrels": "q1\ta\t0\nq2\tb\t1\n"}, "queries.jsonl:1: query 'q1' has no relevant document"),
        ({"qrels": QRELS + "q9\ta\t1\n"}, "qrels.tsv:4: there is no query 'q9'"),
        ({"qrels": QRELS + "q2\tz\t1\n"}, "qrels.tsv:4: there is no document 'z'"),
        ({"qrels": QRELS + "q2\ta\t1.5\n"}, "qrels.tsv:4: grade '1.5' is not a whole number"),
        ({"qrels": QRELS + "q2\ta\tNaN\n"}, "qrels.tsv:4: grade 'NaN' is not a whole number"),
        ({"qrels": QRELS + "q2\ta\t-1\n"}, "qrels.tsv:4: grade -1 is negative"),
        ({"qrels": QRELS + "q2\ta\n"}, "qrels.tsv:4: 2 columns, not 3"),
        (
            {"qrels": QRELS + "\nq2\tb\t2\n"},
            "qrels.tsv:5: query 'q2' and document 'b' were judged on line 3",
        ),
        ({"qrels": "q1\ta\tbest\n"}, "qrels.tsv:1: grade 'best' is not a whole number"),
        (
            {"qrels": QRELS + "query\tdocument\tgrade\n"},
            "qrels.tsv:4: grade 'grade' is not a whole number",
        ),
    ],
)
def test_error_names_file_and_line(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    assert f"{tmp_path}/{message}" in refusal(write(tmp_path, **files))


def test_unanswerable_queries_must_be_allowed(tmp_path: Path) -> None:
    folder = write(tmp_path, queries=[FRUIT, PEAR, {"id": "q3", "text": "?"}])
    assert load(folder, allow_unanswerable=True).unanswerable == ("q3",)


def test_house_dataset_is_complete() -> None:
    dataset = house()
    assert dataset.name == "house"
    assert len(dataset.documents) == 400
    assert any(document.links for document in dataset.documents)
    assert not dataset.unanswerable
    assert len(dataset.fingerprint) == 64
