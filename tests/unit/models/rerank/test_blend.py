"""Every blend keeps all hits, the order of unread hits and the score range."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trivet.search.rerank import blended
from trivet.types import Candidate, Contribution, Fused, Ranking

scores = st.lists(st.floats(0, 1).map(lambda number: round(number, 3)), min_size=1, max_size=12)
opinions = st.lists(
    st.floats(-20, 20).map(lambda number: round(number, 3)), min_size=12, max_size=12
)


def fused_of(values: list[float]) -> list[Fused]:
    return [
        Fused(id=f"m{place}", score=score, contributions=())
        for place, score in enumerate(sorted(values, reverse=True))
    ]


def ranking_of(read: list[Fused], values: list[float]) -> Ranking:
    pairs = sorted(zip(read, values, strict=False), key=lambda pair: (-pair[1], pair[0].id))
    candidates = tuple(Candidate(id=hit.id, score=score) for hit, score in pairs)
    return Ranking(
        leg="rerank", floor=min((pair[1] for pair in pairs), default=0.0), candidates=candidates
    )


@given(scores, opinions, st.integers(1, 12), st.floats(0, 1), st.integers(0, 3))
def test_blend_invariants(
    values: list[float], reranker_scores: list[float], top: int, share: float, unread: int
) -> None:
    fused = fused_of(values)
    read = fused[unread:top]
    after = blended(fused, top, ranking_of(read, reranker_scores), share)
    assert sorted(hit.id for hit in after) == sorted(hit.id for hit in fused)
    assert [hit.id for hit in after[top:]] == [hit.id for hit in fused[top:]]
    standings = [hit.standing for hit in after]
    assert standings == sorted(standings, reverse=True)
    assert all(0 <= standing <= fused[0].score for standing in standings)
    assert {hit.id for hit in after if hit.rerank} == {hit.id for hit in read}


@given(scores, opinions, st.integers(1, 12))
def test_extreme_shares_keep_one_order(
    values: list[float], reranker_scores: list[float], top: int
) -> None:
    fused = fused_of(values)
    ranking = ranking_of(fused[:top], reranker_scores)
    assert [hit.id for hit in blended(fused, top, ranking, 0.0)] == [hit.id for hit in fused]
    alone = blended(fused, top, ranking, 1.0)[:top]
    raw = [hit.rerank.score for hit in alone if hit.rerank]
    assert raw == sorted(raw, reverse=True)


def test_blend_keeps_graph_contribution() -> None:
    """The reranker cannot see why the graph raised a memory, so it must not lower that part."""

    def hit(id: str, text: float, graph: float) -> Fused:
        parts = {"dense": text, "graph": graph}
        contributions = tuple(
            Contribution(leg=leg, rank=1, score=value, normalised=value, weight=0.5)
            for leg, value in parts.items()
        )
        return Fused(id=id, score=text / 2 + graph / 2, contributions=contributions)

    walked = [hit("bridge", 0.2, 0.9), hit("same-words", 0.7, 0.0), hit("other", 0.1, 0.0)]
    read = [hit("bridge", 1.1, 0.0), hit("same-words", 0.7, 0.0), hit("other", 0.1, 0.0)]
    opinion = ranking_of([walked[1], walked[0], walked[2]], [2.0, 1.0, -3.0])
    assert blended(walked, 3, opinion, 0.6)[0].id == "bridge"
    assert blended(read, 3, opinion, 0.9)[0].id == "same-words"
