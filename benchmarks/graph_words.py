"""What graph.md says around its tables."""

INTRODUCTION = """
# Does the graph leg earn its place?

Two legs are words and vectors, fused as by default (`convex(norm=spread, lexical=1, dense=8)`, `bm25(k1=0.9, b=0.4)`,
`depth(50)`); three legs add the walk over the concept graph (`norm.graph=raw, graph=W`). Differences are paired by
query, with 95 % bootstrap intervals in brackets; ▲ and ▼ mark an interval that lies above or below zero. `p (Holm)`
is of the randomisation test, corrected over the corpora or strata of its table. `all@10` is the share of queries with
every relevant passage among the first ten. Made by

    TRIVET_DATA=... python benchmarks/graph_evidence.py && python benchmarks/graph_report.py docs/results/graph.json
"""

SWEEP = """
`graph only` is the order of the walk alone; a query that names no concept then gets nothing. Note that the walk
starts from the two legs' hits, so this is not a graph without them: it says how well the walk orders what it reaches.
"""

GRAPHS = """
HotpotQA and MuSiQue come with triples that GPT-3.5 extracted from their very passages (those of HippoRAG). They stand
in for a language model here and enter through the store's own door. `triples` keeps nothing of the rules but what a
passage is about, its title; without it no passage would be about anything, and the comparison would be of titles, not
of extraction. `both` has the mentions of either. A triple counts by the concepts it names; its relation is not used
by the walk.
"""

FUSION = """
Why the graph's scores enter as they are (`raw`): what arrives by the walk is large where the query names something
specific and the best hits agree, and next to nothing elsewhere. Every norm that rescales by query throws that away
and lets the graph shout where it has nothing to say. `mass` is what arrived itself instead of its square root.
"""

STRATA = """
Two legs against three at the default weight. MuSiQue's strata are the number of hops, HotpotQA's its types of
question. The farthest hop of a query is its relevant passage with the lowest cosine to it. `missed by two legs`:
relevant passages not among the first ten of two legs; `brought in` and `pushed out`: those that three legs put there
or push out; `in neither leg`: relevant passages that neither leg returned at all, among its 50.
"""

SWITCH = """
The leg is silent where a query names no concept, and quiet where it names common ones: at a weight of `named` of all
that it names, the walk has half its strength. `named=0` gives it full strength for anything named; `always` also
walks, from the hits alone, where nothing is named.
"""

LEFT_OUT = """
For each corpus, the arm with the largest mean gain in nDCG@10 over the other seven among those that harm none of
them: an arm harms a corpus if its interval lies wholly below -0.005.
"""

WHOLE = """
The arms above stop at the fusion. Through the whole read path, with the exact-match bonus, the prior, folding of
duplicates and links, at the default weight:
"""

CLOSING = """
## 9. What to keep in mind

- Only weight and switch were chosen with each corpus left out. The rules of extraction and the other constants of the
  walk were set while looking at these corpora; section 5 shows how little they matter one at a time.
- Both sets where the graph wins were built from Wikipedia by chaining passages through shared names, which is what a
  graph of names follows. Nothing here shows the same gain on an agent's own notes.
"""
