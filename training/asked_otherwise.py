"""Other queries for the same text, from our own templates: web searches, claims and surveys."""

from __future__ import annotations

import random
import re

ARTICLES = frozenset(
    {"a", "an", "the", "this", "that", "given", "specified", "its", "their", "all", "any", "some"}
)
FILLERS = frozenset(
    {"of", "for", "to", "from", "in", "on", "with", "into", "by", "and", "or", "as", "if"}
)
# What people type instead of a docstring's words.
OTHER_WORDS = {
    "return": ("get", "find", "obtain", ""), "returns": ("get", "get the", ""), "compute": ("calculate", "get", "find"),
    "calculate": ("compute", "get"), "create": ("make", "build", "generate"), "construct": ("build", "create", "make"),
    "remove": ("delete", "drop", "strip"), "delete": ("remove",), "convert": ("change", "turn", "transform"),
    "check": ("test", "determine", "see"), "determine": ("check", "find out"), "retrieve": ("get", "fetch"),
    "fetch": ("get", "download"), "generate": ("create", "make", "produce"), "initialize": ("set up", "start"),
    "string": ("str", "text"), "strings": ("text", "str"), "dictionary": ("dict", "map"), "integer": ("int", "number"),
    "directory": ("folder", "dir", "path"), "list": ("array", "list"), "array": ("numpy array", "list", "array"),
    "iterate": ("loop",), "parse": ("read", "extract"), "write": ("save", "output"), "load": ("read", "open"),
    "read": ("load", "open"), "display": ("show", "print"), "draw": ("plot", "show"), "plot": ("draw", "graph"),
    "element": ("item", "value"), "elements": ("items", "values"), "sequence": ("list", "iterable"),
    "obtain": ("get",), "set": ("change", "set"), "add": ("append", "insert"), "split": ("divide", "break"),
    "join": ("combine", "merge"), "merge": ("combine", "join"), "replace": ("substitute", "change"),
    "sort": ("order", "sort"), "select": ("choose", "filter"), "duplicate": ("copy", "repeated"), "copy": ("clone",),
    "execute": ("run", "call"), "evaluate": ("run", "compute"), "whether": ("if",), "number": ("count", "number"),
}  # fmt: skip
INVERTED = {
    "increases": "decreases", "increase": "decrease", "reduces": "increases", "high": "low", "higher": "lower",
    "more": "less", "most": "few", "common": "rare", "rare": "common", "can": "cannot", "is": "is not",
    "are": "are not", "often": "rarely", "usually": "never", "before": "after", "early": "late",
}  # fmt: skip
LEADS = re.compile(
    r"^(however|therefore|thus|moreover|also|in addition|for example|for instance|furthermore|additionally|"
    r"instead|then|hence|in general|generally|typically|usually|note that|in particular|but|and|so)\b,?\s+",
    re.I,
)
PRONOUN = re.compile(
    r"^(it|this|they|these|this condition|the condition|this method|this function)\b", re.I
)
# Summary verbs: infinitive and gerund.
VERBS = {
    "compute": ("computed", "computing"), "computes": ("computed", "computing"), "return": ("obtained", "obtaining"),
    "returns": ("obtained", "obtaining"), "estimate": ("estimated", "estimating"), "fit": ("fitted", "fitting"),
    "calculate": ("calculated", "calculating"), "calculates": ("calculated", "calculating"),
    "create": ("constructed", "constructing"), "creates": ("constructed", "constructing"),
    "construct": ("constructed", "constructing"), "find": ("found", "finding"), "finds": ("found", "finding"),
    "apply": ("applied", "applying"), "applies": ("applied", "applying"), "generate": ("generated", "generating"),
    "convert": ("converted", "converting"), "evaluate": ("evaluated", "evaluating"), "solve": ("solved", "solving"),
    "perform": ("performed", "performing"), "determine": ("determined", "determining"), "test": ("tested", "testing"),
    "transform": ("transformed", "transforming"), "get": ("obtained", "obtaining"), "define": ("defined", "defining"),
    "minimize": ("minimized", "minimizing"), "integrate": ("integrated", "integrating"), "check": ("tested", "testing"),
    "select": ("selected", "selecting"), "predict": ("predicted", "predicting"),
    "simulate": ("simulated", "simulating"),
    "approximate": ("approximated", "approximating"), "measure": ("measured", "measuring"),
}  # fmt: skip
THINGS = (
    "what is known about {}", "what work has been done on {}", "are there any papers dealing with {}",
    "what are the properties of {}", "what theory describes {}", "results available on {}",
)  # fmt: skip
DEEDS = (
    "how can {} be {done}", "what methods are available for {doing} {}", "has anyone {done} {}",
    "is there a simple way of {doing} {}", "what has been done about {doing} {}", "can {} be {done}",
    "what are the existing solutions for {doing} {}",
)  # fmt: skip


def searched(sentence: str, name: str, chance: random.Random) -> str:
    """Return a web search for a Python function that does this."""
    plain = re.sub(r"[^\w\s./+-]", " ", sentence.lower()).strip(" .")
    words = [word.strip(".") for word in plain.split()][:14]
    if words and words[0].endswith("s") and not words[0].endswith("ss"):
        words[0] = words[0].removesuffix("s")
    named = _words(name)
    if len(named) >= 2 and chance.random() < 0.25:
        words = named if chance.random() < 0.5 else words[: len(words) // 2 + 1] + named
    changed: list[str] = []
    for word in words:
        others = OTHER_WORDS.get(word)
        if others and chance.random() < 0.5:
            changed.extend(chance.choice(others).split())
        elif word in ARTICLES:
            changed.extend([word] if chance.random() < 0.15 else [])
        else:
            changed.append(word)
    kept = _fewer(changed, chance, chance.choice((0.0, 0.2, 0.35)))
    kept = list(dict.fromkeys(kept))[: chance.randint(5, 10)]
    while kept and kept[-1] in FILLERS | ARTICLES:
        kept.pop()
    query = " ".join(kept)
    form = chance.random()
    if form < 0.3:
        return f"python {query}"
    if form < 0.5:
        return f"{query} python" if chance.random() < 0.5 else f"{query} in python"
    if form < 0.62:
        return f"how to {query} in python"
    if form < 0.72:
        return f"python how to {query}"
    if form < 0.8:
        return f"python function to {query}"
    return query


QUESTIONS = (
    "how do I {}?", "how do we {}?", "where do we {}?", "where is the code to {}?", "which function to use to {}?",
    "is there a helper to {}", "what's the right way to {}?", "I want to {}, what do we have for that?", "how can I {}",
    "need to {}", "show me how to {}", "what do I call to {}?",
)  # fmt: skip
DEEDS_OF_CODE = frozenset(
    "add append apply assert attach bind build cache call check clean clear close collect compare "
    "compile configure connect convert copy count create decode delete detect disable display "
    "download draw drop dump emit enable encode ensure escape execute expand export extract fetch "
    "fill filter format get group handle import increment index initialize insert inspect install "
    "iterate join list load lock log look make map mark match merge move normalize open parse "
    "patch perform pick plot pop prepare print process push put query raise read receive register "
    "release remove rename render replace reset resize resolve restore retrieve retry rotate run "
    "sample save scale schedule search select send serialize set show shuffle skip sort split "
    "start stop store strip submit subtract sum swap switch sync tell tokenize train translate "
    "trim truncate try turn unpack update upload use validate verify wait "
    "walk wrap write yield".split()
)
WANTED = (
    "where is the {}?", "what is the code for {}?", "which part of the code is about {}?", "{}", "where do we have {}?",
    "what do we have for {}", "anything for {}?",
)  # fmt: skip
NAMED = (
    "what does {} do?",
    "{}",
    "where is {} defined",
    "{} implementation",
    "how does {} work?",
    "explain {}",
)


def questioned(sentence: str, name: str, chance: random.Random) -> str:
    """Return a question to an assistant who knows the code, by action or by name."""
    if name and (not sentence or chance.random() < 0.2):
        return chance.choice(NAMED).format(
            name if chance.random() < 0.6 else " ".join(_words(name))
        )
    words = re.sub(r"[`*]", "", sentence).rstrip(" .").split()[:22]
    words = [*words[:1], *_fewer(words[1:], chance, chance.choice((0.0, 0.0, 0.15)))]
    verb = _verb(words[0]) if words else ""
    rest = words[1:] if verb else words
    if chance.random() < 0.4:
        rest = [chance.choice(OTHER_WORDS.get(word.lower(), (word,))) or word for word in rest]
    said = " ".join(
        [verb, *rest]
        if verb
        else [word.lower() if at == 0 else word for at, word in enumerate(rest)]
    )
    return chance.choice(QUESTIONS if verb else WANTED).format(
        said.removeprefix("the ") if not verb else said
    )


def _verb(word: str) -> str:
    plain = word.lower()
    for form in (plain.removesuffix("es"), plain.removesuffix("s"), plain):
        if form in VERBS or form in DEEDS_OF_CODE:
            return form
    return ""


def claimed(sentence: str, subject: str, chance: random.Random) -> str:
    """Return the sentence as a shorter claim, sometimes negated, which asks for the same text."""
    text = re.sub(r"\s*[(\[][^)\]]*[)\]]", "", sentence.strip())
    text = LEADS.sub("", text)
    if subject:
        text = PRONOUN.sub(lambda found: subject, text)
    words = text.rstrip(".").split()
    if chance.random() < 0.3:
        places = [at for at, word in enumerate(words) if word.lower() in INVERTED]
        if places:
            at = chance.choice(places)
            words[at] = INVERTED[words[at].lower()]
    if chance.random() < 0.5 and len(words) > 12:
        cuts = [at for at, word in enumerate(words[5:-1], 6) if word.endswith((",", ";", ":"))]
        if cuts:
            words = words[: chance.choice(cuts)]
    words = _fewer(words, chance, chance.choice((0.0, 0.1, 0.2)))
    text = " ".join(words).strip(" ,;:")
    return text[:1].upper() + text[1:] + ("." if chance.random() < 0.7 else "")


def surveyed(summary: str, chance: random.Random) -> str:
    """Return a literature question made from the summary, or "" if it has no suitable form."""
    words = re.sub(r"\s+", " ", summary.strip().rstrip(".")).split()
    words = [*words[:1], *(_fewer(words[1:], chance, chance.choice((0.0, 0.1, 0.25))))]
    verb = VERBS.get(words[0].lower())
    thing = " ".join(words[1:] if verb else words)
    thing = thing[:1].lower() + thing[1:]
    end = chance.choice((" .", "?", ""))
    if verb is None:
        if words[0].lower() not in {"the", "a", "an"} and not words[0].endswith(
            ("tion", "al", "ed", "ic", "ing", "ar")
        ):
            return ""
        return chance.choice(THINGS).format(thing) + end
    done, doing = verb
    return chance.choice(DEEDS).format(thing, done=done, doing=doing) + end


def _fewer(words: list[str], chance: random.Random, share: float) -> list[str]:
    return [word for word in words if chance.random() >= share * (1.4 if len(word) <= 3 else 0.8)]


def _words(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", name).strip().lower().split()
