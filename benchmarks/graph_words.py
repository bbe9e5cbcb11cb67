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
What arrives by the walk is large where the query names something specific and the best hits agree, and next to
nothing elsewhere. `raw` keeps that; a norm by query gives every list the same height. At small weights that matters
little, and the best allowed weight of `spread` is not far behind; at larger ones the norms tip over, and lose on
chat, code and science while they still gain on the multi-hop sets. `mass` is what arrived itself instead of its
square root.
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
them: an arm harms a corpus if its interval lies wholly below -0.005. The last of the tables by corpus has the
stricter rule that on each of the others the interval must lie wholly above -0.005.
"""

WHOLE = """
The arms above stop at the fusion. Through the whole read path, with the exact-match bonus, the prior, folding of
duplicates and links, at the default weight:
"""

RECOMMENDED = """
The default is 8 and `named=0.3`. The rule itself goes further; the default departs from it on the side of caution,
and after seeing these figures: what the rule gains beyond 8 is small and comes from the multi-hop sets, while the
corpora that have nothing to win begin to lean down. Chosen together with the weight, the switch was once turned off
(`named=0`) for cosqa, which is the largest loss of any fold: the switch stays.
"""

CLOSING = """
## 9. What to keep in mind

- It wins where a question chains passages through names (hotpotqa, musique) and on our own notes (house), most where
  the passage two steps away is unlike the question. House was written by us, has tags on every memory and links
  between some.
- It is neutral on chat, also on its multi-hop questions (locomo: the speakers are everywhere, so nothing specific is
  named; lihua), on scientific abstracts and on code. scifact leans down and has too few queries to rule out a loss of
  more than 0.005 at any weight, even 1.
- At the default it is shown to hurt no corpus. It does hurt with a norm by query or fusion by rank at weights that
  gain as much on the multi-hop sets (section 3), and on code with full strength for every name at larger weights
  (section 6).
- As a ranking of its own it is poor everywhere but on the multi-hop sets: it is a third leg, not a first.
- Triples of a language model add little to the rules (section 2).
- Only weight and switch were chosen with each corpus left out. The rules of extraction and the other constants of the
  walk were set while looking at these corpora; section 5 shows how little they matter one at a time.
- Both large gains are on sets built over Wikipedia so that passages connect through a shared entity, which is what a
  graph of names follows.
"""
