"""Importers convert small synthetic files in the formats of the original datasets."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from trivet.errors import InvalidInput
from trivet.lab.datasets.catalog import IMPORTERS, import_original
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.plain_layout import load, save


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(value).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_csv(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def turn(name: str, text: str, **more: str) -> dict[str, str]:
    return {"speaker": "Ada", "dia_id": name, "text": text, **more}


def question(category: int, *evidence: str) -> dict[str, Any]:
    return {
        "question": f"Question {category}?",
        "answer": 7,
        "evidence": list(evidence),
        "category": category,
    }


def locomo(folder: Path, **changes: Any) -> None:
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            turn("D1:1", "Hello!"),
            turn("D1:2", "Look.", blip_caption="a photo of a kite"),
        ],
        "session_2_date_time": "12:05 am on 9 May, 2023",
        "session_2": [turn("D2:1", "Good night.")],
        "session_3_date_time": "1:00 pm on 10 May, 2023",
    }
    questions = [
        question(1, "D1:1; D2:1"),
        question(2, "D1:2", "D"),
        question(3, "D1:1 D1:2 D9:9"),
        question(4, "D2:1"),
        question(5, "D1:1", "D1:1"),
        question(3),
        question(2, "D1:01"),
    ]
    sample = {
        "sample_id": "conv-1",
        "conversation": conversation,
        "qa": questions,
        "event_summary": {},
    }
    write_json(folder / "locomo" / "locomo10.json.gz", [{**sample, **changes}])


def test_import_locomo(tmp_path: Path) -> None:
    locomo(tmp_path)
    dataset = import_original("locomo", tmp_path)
    assert [(one.id, one.text, one.scope, one.created_at) for one in dataset.documents] == [
        ("conv-1/D1:1", "Ada: Hello!", "conv-1", "2023-05-08T13:56:00Z"),
        ("conv-1/D1:2", "Ada: Look. [a photo of a kite]", "conv-1", "2023-05-08T13:56:00Z"),
        ("conv-1/D2:1", "Ada: Good night.", "conv-1", "2023-05-09T00:05:00Z"),
    ]
    assert dataset.grades == {
        "conv-1/q0": {"conv-1/D1:1": 1, "conv-1/D2:1": 1},
        "conv-1/q1": {"conv-1/D1:2": 1},
        "conv-1/q2": {"conv-1/D1:1": 1, "conv-1/D1:2": 1},
        "conv-1/q3": {"conv-1/D2:1": 1},
        "conv-1/q4": {"conv-1/D1:1": 1},
    }
    strata = [query.stratum for query in dataset.queries]
    assert strata == ["multi-hop", "temporal", "open", "single-hop", "adversarial"]


def musique(folder: Path, **changes: Any) -> None:
    passages = [("Kites", "Fly."), ("Kites", "Fall."), ("Wind", "Blows."), ("Sea", "Waves.")]
    write_json(
        folder / "multihop" / "musique_corpus.json.gz",
        [{"title": title, "text": text} for title, text in passages],
    )
    paragraphs = [
        {"idx": number, "title": title, "paragraph_text": text, "is_supporting": number < 3}
        for number, (title, text) in enumerate(passages)
    ]
    one = {"id": "3hop1__1_2_3", "question": "Why?", "paragraphs": paragraphs, "answer": "x"}
    write_json(folder / "multihop" / "musique.json.gz", [{**one, **changes}])


def test_musique_separates_passages_with_same_title(tmp_path: Path) -> None:
    musique(tmp_path)
    dataset = import_original("musique", tmp_path)
    assert [(one.title, one.text) for one in dataset.documents][:2] == [
        ("Kites", "Fly."),
        ("Kites", "Fall."),
    ]
    assert dataset.grades == {"3hop1__1_2_3": {"p0": 1, "p1": 1, "p2": 1}}
    assert list(dataset.strata) == ["3-hop"]


def hotpotqa(folder: Path, **changes: Any) -> None:
    corpus = {
        "Kite": ["A kite flies.", " It may fall."],
        "Wind": ["Wind blows."],
        "Sea": ["Waves."],
    }
    write_json(folder / "multihop" / "hotpotqa_corpus.json.gz", corpus)
    facts = [["Kite", 0], ["Kite", 1], ["Wind", 0]]
    one = {
        "_id": "5a",
        "question": "Why?",
        "supporting_facts": facts,
        "type": "bridge",
        "level": "hard",
    }
    write_json(
        folder / "multihop" / "hotpotqa.json.gz", [one, {**one, "type": "comparison", **changes}]
    )


def test_hotpotqa_keeps_repeated_question(tmp_path: Path) -> None:
    hotpotqa(tmp_path)
    dataset = import_original("hotpotqa", tmp_path)
    assert dataset.documents[0].text == "A kite flies. It may fall."
    assert dataset.grades == {"5a": {"p0": 1, "p1": 1}, "5a-2": {"p0": 1, "p1": 1}}
    assert dataset.strata == {"bridge": ("5a",), "comparison": ("5a-2",)}


def scifact(folder: Path, corpus: Mapping[str, str] | None = None, **changes: str) -> None:
    abstract = "['It\\'s a \"kite\".'\n \"Ada's kite.\"\n 'It flies. ']"
    abstracts = [
        {"doc_id": "11", "title": "Kites", "abstract": abstract, "structured": "False"},
        {
            "doc_id": "22",
            "title": "Wind",
            "abstract": "['Blows.']",
            "structured": "False",
            **(corpus or {}),
        },
    ]
    write_csv(folder / "scifact" / "corpus_train.csv.gz", abstracts)
    claim = {
        "id": "1",
        "claim": "Kites, fly.",
        "evidence_label": "SUPPORT",
        "cited_doc_ids": "[ 11 22]",
    }
    other = {
        "id": "2",
        "claim": "Wind rests.",
        "evidence_label": "",
        "cited_doc_ids": "[22]",
        **changes,
    }
    write_csv(folder / "scifact" / "claims_validation.csv.gz", [claim, claim, other])


def test_import_scifact(tmp_path: Path) -> None:
    scifact(tmp_path)
    dataset = import_original("scifact", tmp_path)
    assert dataset.documents[0].text == "It's a \"kite\". Ada's kite. It flies."
    assert dataset.grades == {"1": {"11": 1, "22": 1}, "2": {"22": 1}}
    assert dataset.strata == {"supported": ("1",), "undecided": ("2",)}


ABSTRACTS = """.I 1
.T
kites in
wind .
.A
ada
.B
j. kites 1
.W
kites in wind .
they fly .
.A
and fall .
.I 2
.T
.A
.B
.W
.I 3
.T
sea .
.A
ben
.B
.W
waves .
"""
QUESTIONS = ".I 001\r\n.W\r\nwhat flies\r\nin wind .\r\n.I 004\r\n.W\r\nwhat waves .\r\n"


def cranfield(folder: Path, **changes: str) -> None:
    files = {
        "cran.all.1400": ABSTRACTS,
        "cran.qry": QUESTIONS,
        "cranqrel": "1 0 1 1\n1 0 2 2\n1 0 3 5\n2 0 3 4\n",
        **changes,
    }
    for name, text in files.items():
        write_text(folder / "cranfield" / name, text)


def test_cranfield_inverts_grades_and_numbers_queries(tmp_path: Path) -> None:
    cranfield(tmp_path)
    dataset = import_original("cranfield", tmp_path)
    assert [(one.id, one.title, one.text) for one in dataset.documents] == [
        ("1", "kites in wind .", "kites in wind . they fly . and fall ."),
        ("3", "sea .", "waves ."),
    ]
    assert [(one.id, one.text) for one in dataset.queries] == [
        ("1", "what flies in wind ."),
        ("2", "what waves ."),
    ]
    assert dataset.grades == {"1": {"1": 4, "3": 0}, "2": {"3": 1}}


def cosqa(folder: Path, **changes: Any) -> None:
    write_json(folder / "cosqa" / "code_idx_map.txt", {"def fly(): ...": 0, "def fall(): ...": 1})
    one = {
        "idx": "cosqa-train-1",
        "doc": "python fall down",
        "code": "def fall(): ...",
        "label": 1,
        "retrieval_idx": 1,
    }
    write_json(folder / "cosqa" / "cosqa-retrieval-dev-500.json", [{**one, **changes}])


def test_import_cosqa(tmp_path: Path) -> None:
    cosqa(tmp_path)
    dataset = import_original("cosqa", tmp_path)
    assert [one.text for one in dataset.documents] == ["def fly(): ...", "def fall(): ..."]
    assert dataset.grades == {"cosqa-train-1": {"f1": 1}}
    assert dataset.strata == {}


def lihua(folder: Path, chat: str = "20260118_1200", **changes: str) -> None:
    (folder / "lihua").mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "lihua" / "LiHuaWorld.zip", "w") as archive:
        archive.writestr("LiHua-World/", "")
        archive.writestr(f"LiHua-World/week2/{chat}.txt", "Time: 20260118_12:00\nLiHua: Hello!\n")
        archive.writestr("LiHua-World/week9/20260301.txt", "Time: 20260301\nLiHua: Bye!")
    evidence = {
        "0": ("20260118_12:00<and>20260301", "Multi"),
        "1": ("Time: 20260118_12:00", "Single"),
        "2": ("20260301<or>20260118_12:00", "Single"),
        "3": ("What", "Single"),
        "4": ("N/A", "Null"),
    }
    questions = {
        number: {
            "question": f"Question {number}?",
            "answer": "Yes",
            "evidence": names,
            "type": kind,
        }
        for number, (names, kind) in evidence.items()
    }
    write_json(
        folder / "lihua" / "query_set.json", {**questions, "5": {**questions["1"], **changes}}
    )


def test_import_lihua(tmp_path: Path) -> None:
    lihua(tmp_path)
    dataset = import_original("lihua", tmp_path)
    assert [(one.id, one.created_at) for one in dataset.documents] == [
        ("20260118_1200", "2026-01-18T12:00:00Z"),
        ("20260301", "2026-03-01T00:00:00Z"),
    ]
    both, first = {"20260118_1200": 1, "20260301": 1}, {"20260118_1200": 1}
    assert dataset.grades == {"q0": both, "q1": first, "q2": both, "q5": first}
    assert dataset.strata == {"multi-hop": ("q0",), "single-hop": ("q1", "q2", "q5")}


def test_import_lihua_unanswerable_questions(tmp_path: Path) -> None:
    lihua(tmp_path)
    dataset = import_original("lihua-unanswerable", tmp_path)
    assert dataset.unanswerable == ("q4",)
    assert dataset.strata["unanswerable"] == ("q4",)


def all_together(*writers: Callable[[Path], None]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for writer in writers:
            writer(folder)

    return write


WRITERS: Mapping[str, Callable[..., None]] = {
    "cosqa": cosqa,
    "cranfield": cranfield,
    "hotpotqa": hotpotqa,
    "lihua": lihua,
    "lihua-unanswerable": lihua,
    "locomo": locomo,
    "locomo-sessions": locomo,
    "mixed-dialogue": locomo,
    "mixed-everything": all_together(locomo, lihua, scifact, cosqa),
    "mixed-passages": all_together(musique, hotpotqa),
    "musique": musique,
    "scifact": scifact,
    "sessions": locomo,
}


def test_transcript_grades_below_turn(tmp_path: Path) -> None:
    locomo(tmp_path)
    mixed = import_original("mixed-dialogue", tmp_path)
    turns = {document.id for document in import_original("locomo", tmp_path).documents}
    [transcript] = [document for document in mixed.documents if document.id not in turns]
    assert transcript.text == "Ada: Hello!\nAda: Look. [a photo of a kite]"
    assert mixed.grades["conv-1/q0"] == {transcript.id: 1, "conv-1/D1:1": 2, "conv-1/D2:1": 2}
    assert mixed.grades["conv-1/q3"] == {"conv-1/D2:1": 2}


def test_sessions_contain_only_transcripts(tmp_path: Path) -> None:
    locomo(tmp_path)
    scoped = import_original("locomo-sessions", tmp_path)
    assert [(one.id, one.text, one.scope) for one in scoped.documents] == [
        ("conv-1/D1", "Ada: Hello!\nAda: Look. [a photo of a kite]", "conv-1"),
        ("conv-1/D2", "Ada: Good night.", "conv-1"),
    ]
    assert scoped.grades["conv-1/q2"] == {"conv-1/D1": 1}
    sessions = import_original("sessions", tmp_path)
    assert [(one.id, one.text, one.scope) for one in sessions.documents] == [
        ("conv-1/D1", "Ada: Hello!\nAda: Look. [a photo of a kite]", None),
        ("conv-1/D2", "Ada: Good night.", None),
    ]
    assert sessions.grades["conv-1/q0"] == {"conv-1/D1": 1, "conv-1/D2": 1}


@pytest.mark.parametrize("name", IMPORTERS)
def test_every_importer_gives_valid_dataset(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path)
    dataset: Dataset = import_original(name, tmp_path)
    save(dataset, tmp_path / "saved" / name)
    again = load(tmp_path / "saved" / name, allow_unanswerable=bool(dataset.unanswerable))
    assert again == dataset


@pytest.mark.parametrize(
    ("name", "changes", "file", "problem"),
    [
        ("locomo", {"qa": [{"question": "?"}]}, "locomo10.json.gz", "missing required field"),
        ("locomo", {"qa": [question(6, "D1:1")]}, "locomo10.json.gz", "category 6 is not 1 to 5"),
        ("locomo", {"conversation": {"session_1": []}}, "locomo10.json.gz", "None is not a time"),
        (
            "locomo",
            {
                "conversation": {
                    "session_1_date_time": "1:56 pm on 8 May, 2023",
                    "session_1": [{"text": "?"}],
                }
            },
            "locomo10.json.gz",
            "session_1 of conv-1",
        ),
        (
            "musique",
            {"paragraphs": []},
            "musique.json.gz",
            "3hop1__1_2_3 has no supporting paragraph",
        ),
        (
            "musique",
            {"paragraphs": [{"title": "Moon", "paragraph_text": "?", "is_supporting": True}]},
            "musique.json.gz",
            "'Moon' is not in the corpus",
        ),
        ("hotpotqa", {"supporting_facts": []}, "hotpotqa.json.gz", "5a has no supporting fact"),
        (
            "hotpotqa",
            {"supporting_facts": [["Moon", 0]]},
            "hotpotqa.json.gz",
            "'Moon' is not in the corpus",
        ),
        ("scifact", {"cited_doc_ids": "[33]"}, "claims_validation.csv.gz:4", "claim 2 cites 33"),
        (
            "scifact",
            {"cited_doc_ids": "[]"},
            "claims_validation.csv.gz:4",
            "claim 2 cites no abstract",
        ),
        (
            "scifact",
            {"evidence_label": "MAYBE"},
            "claims_validation.csv.gz:4",
            "'MAYBE' is not one of",
        ),
        ("scifact", {"corpus": {"abstract": "[]"}}, "corpus_train.csv.gz:5", "no sentence"),
        (
            "scifact",
            {"corpus": {"abstract": "['\\x']"}},
            "corpus_train.csv.gz:5",
            "not a list of sentences",
        ),
        ("cranfield", {"cran.qry": "what flies"}, "cran.qry:1", "must start with .I"),
        ("cranfield", {"cranqrel": "1 0 1 9"}, "cranqrel:1", "grade from 1 to 5"),
        ("cranfield", {"cranqrel": "1 0 1 1\n1 0 7 1"}, "cranqrel:2", "no abstract 7"),
        ("cranfield", {"cranqrel": "1 0 1 1"}, "cranqrel", "query 2 a relevant abstract"),
        (
            "cosqa",
            {"retrieval_idx": 9},
            "cosqa-retrieval-dev-500.json",
            "function 9 is not in the code map",
        ),
        ("lihua", {"chat": "holiday"}, "LiHuaWorld.zip", "holiday.txt is not named by a date"),
        ("lihua", {"type": "Triple"}, "query_set.json", "type 'Triple' is not one of"),
    ],
)
def test_invalid_original_error_names_file(
    tmp_path: Path, name: str, changes: dict[str, Any], file: str, problem: str
) -> None:
    WRITERS[name](tmp_path, **changes)
    with pytest.raises(InvalidInput) as refused:
        import_original(name, tmp_path)
    assert f"{file}: " in str(refused.value)
    assert problem in str(refused.value)


@pytest.mark.parametrize("name", IMPORTERS)
def test_missing_original_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        import_original(name, tmp_path)


def test_broken_archive_is_named(tmp_path: Path) -> None:
    lihua(tmp_path)
    (tmp_path / "lihua" / "LiHuaWorld.zip").write_bytes(b"no zip")
    with pytest.raises(InvalidInput, match=r"LiHuaWorld\.zip: not a zip"):
        import_original("lihua", tmp_path)


def test_invalid_json_file_is_named(tmp_path: Path) -> None:
    cosqa(tmp_path)
    write_text(tmp_path / "cosqa" / "code_idx_map.txt", "{")
    with pytest.raises(InvalidInput, match=r"code_idx_map\.txt: "):
        import_original("cosqa", tmp_path)


def test_missing_column_is_named(tmp_path: Path) -> None:
    scifact(tmp_path)
    write_csv(tmp_path / "scifact" / "corpus_train.csv.gz", [{"doc_id": "1", "title": "x"}])
    with pytest.raises(
        InvalidInput, match=r"corpus_train\.csv\.gz:1: there is no column 'abstract'"
    ):
        import_original("scifact", tmp_path)


def test_unknown_name_error_lists_known_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Known names: cosqa, cranfield"):
        import_original("trec", tmp_path)


def test_data_folder_from_argument_or_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cosqa(tmp_path)
    with pytest.raises(InvalidInput, match="TRIVET_DATA"):
        import_original("cosqa")
    with pytest.raises(InvalidInput, match="no such folder"):
        import_original("cosqa", tmp_path / "nowhere")
    monkeypatch.setenv("TRIVET_DATA", str(tmp_path))
    assert import_original("cosqa").name == "cosqa"
