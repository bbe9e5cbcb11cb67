"""Code search ranks by words, names, paths, vectors and file role."""

import numpy as np
import pytest

from trivet.analyse.terms import hashed
from trivet.code.encoder import Encoder, packed
from trivet.code.recipe import DEFAULT, CodeRecipe, parse_code_recipe
from trivet.code.search.query import read_query
from trivet.code.search.rank import Vector, rank, related, vector_of
from trivet.code.search.view import View, view_of

from ..trees import parsed, tree

FILES = {
    "src/http/retry.py": parsed(
        ("parse_retry_after", "def parse_retry_after(header): seconds to wait from the header"),
        (
            "backoff",
            "def backoff(attempt): wait longer after each attempt, parse_retry_after(header)",
        ),
    ),
    "src/http/client.py": parsed(
        ("send", "def send(request): opens the socket and writes the request")
    ),
    "src/store/table.py": parsed(
        ("parse", "def parse(row): a row of the table"), container="Table"
    ),
    "src/store/tree.py": parsed(("parse", "def parse(node): a node of the tree"), container="Tree"),
    "tests/test_retry.py": parsed(
        (
            "test_parse",
            "def test_parse(): seconds to wait from the header parse_retry_after(header) seconds wait",
        )
    ),
}


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(tree(FILES))


def found(
    view: View, query: str, recipe: CodeRecipe = DEFAULT, vector: Vector | None = None
) -> list[str]:
    """Return the files in the order of their best chunk."""
    chunks = rank(view, read_query(query), recipe, vector)
    paths = [
        (segment := view.segment_of(one.chunk))[0].path.at(int(segment[0].file[segment[1]]))
        for one in chunks
    ]
    return list(dict.fromkeys(paths))


def test_query_words_find_matching_chunk(view: View) -> None:
    assert found(view, "open a socket")[0] == "src/http/client.py"


@pytest.mark.parametrize("query", ["parse_retry_after", "parseRetryAfter", "parse retry after"])
def test_name_in_any_style_finds_definition(view: View, query: str) -> None:
    best = rank(view, read_query(query), DEFAULT, None)[0]

    assert view.segments[0].symbol.at(best.chunk) == "parse_retry_after"
    assert {part.leg for part in best.contributions if part.rank} >= {"definitions", "lexical"}


@pytest.mark.parametrize(
    ("query", "path"), [("Table.parse", "table"), ("Tree.parse", "tree"), ("Tree::parse", "tree")]
)
def test_qualified_name_finds_definition_in_container(view: View, query: str, path: str) -> None:
    assert found(view, query)[0] == f"src/store/{path}.py"


def test_exact_spelling_ranks_before_variant() -> None:
    users = {
        f"src/{name}.rs": parsed(("from_request", "fn from_request(request)"))
        for name in ("form", "json")
    }
    definition = {"src/z.rs": parsed(("FromRequest", "trait"))}
    assert found(view_of(tree(users | definition)), "FromRequest")[0] == "src/z.rs"
    assert found(view_of(tree(users | definition)), "from_request")[-1] == "src/z.rs"


def test_variants_do_not_dilute_exact_name() -> None:
    """The definition scores the same alone, with two variants and with two hundred."""

    def worth(lookalikes: int) -> float:
        users = {
            f"src/{n}.rs": parsed(("from_request", "fn from_request(request)"))
            for n in range(lookalikes)
        }
        chosen = view_of(tree({"src/z.rs": parsed(("FromRequest", "trait"))} | users))
        [best] = [
            one
            for one in rank(chosen, read_query("FromRequest"), DEFAULT, None)
            if one.contributions
        ][:1]
        return next(part.score for part in best.contributions if part.leg == "definitions")

    assert worth(0) == worth(2) == worth(200)


def test_candidate_of_one_leg_gets_all_scores() -> None:
    """Over a hundred chunks contain the word more often than the file that is named after it."""
    many = {f"src/{n:03}.py": parsed((f"run{n}", "queue queue queue queue")) for n in range(150)}
    others = {f"src/other{n:03}.py": parsed((f"go{n}", "nothing of it")) for n in range(300)}
    named = {"src/queue.py": parsed(("run", "a queue and much more that has other words"))}
    chosen = view_of(tree(many | others | named))
    best = rank(chosen, read_query("the queue"), DEFAULT, None)[0]
    assert found(chosen, "the queue")[0] == "src/queue.py"
    assert {part.leg for part in best.contributions if part.rank} == {"lexical", "paths"}


def test_tests_rank_after_code_unless_asked_for(view: View) -> None:
    assert found(view, "seconds to wait from the header")[0] == "src/http/retry.py"
    assert found(view, "tests of the seconds to wait from the header")[0] == "tests/test_retry.py"


def test_mentioned_file_ranks_first(view: View) -> None:
    assert (
        found(view, 'File "/home/me/src/store/table.py", line 3, in parse')[0]
        == "src/store/table.py"
    )
    assert found(view, "error in store.tree when a row is parsed")[0] == "src/store/tree.py"


def test_path_words_count(view: View) -> None:
    assert found(view, "http wait longer")[0] == "src/http/retry.py"
    assert "src/http/client.py" in found(view, "http")


def test_vector_finds_chunk_without_shared_words(view: View) -> None:
    encoder = words(
        {"socket": [1, 0], "connect": [1, 0.1], "row": [0, 1], "node": [0, 1], "header": [0, 1]}
    )
    own = view_of(tree(FILES, encoder))

    assert found(own, "connection") == []
    assert (
        found(own, "connection", vector=vector_of(encoder, "connection"))[0] == "src/http/client.py"
    )


def test_chunk_of_changed_file_is_not_found(view: View) -> None:
    alive = view.alive.copy()
    alive[:2] = False

    assert "src/http/retry.py" not in found(View(view.segments, alive), "parse_retry_after")


def test_segments_are_searched_together(view: View) -> None:
    more = tree(
        {"src/new.py": parsed(("parse_retry_after", "def parse_retry_after(value): the new one"))}
    )
    alive = np.concatenate([np.ones(view.chunks, bool), np.ones(more.chunks, bool)])
    alive[:2] = False

    assert found(View((*view.segments, more), alive), "parse_retry_after")[0] == "src/new.py"


def test_repeated_file_ranks_after_other_files(view: View) -> None:
    chunks = rank(view, read_query("wait header"), parse_code_recipe("balance(again=0.1)"), None)
    first_two = {int(view.files[one.chunk]) for one in chunks[:2]}

    assert len(first_two) == 2


def test_related_chunks_are_users_and_used(view: View) -> None:
    of_the_parser = related(view, 0)
    of_the_backoff = related(view, 1)

    assert of_the_parser[0].chunk == 1
    assert {part.leg for part in of_the_parser[0].contributions} == {"uses it"}
    assert of_the_backoff[0].chunk == 0
    assert {part.leg for part in of_the_backoff[0].contributions} == {"used by it"}


def test_recipe_round_trips() -> None:
    recipe = parse_code_recipe("dbsf(dense=2) | bm25(name=5) | demote(test=1) | depth(20)")

    assert recipe.bm25.name == 5
    assert recipe.demote.test == 1
    assert parse_code_recipe(str(recipe)) == recipe


def words(table: dict[str, list[float]]) -> Encoder:
    terms = np.array([hashed(term) for term in table], dtype=np.uint64)
    order = np.argsort(terms)
    vectors = np.array(list(table.values()), np.float32)[order]
    ones = np.ones(len(terms), np.float32)
    return Encoder(
        "words/1", 0.1, 0.2, terms[order], packed(vectors), (ones / 127).astype(np.float32), ones
    )
