"""Rules that pick a user's sentences worth keeping by their wording; in doubt, none."""

from __future__ import annotations

import re

import msgspec

from trivet.agents.capture.transcript import LONGEST, SHORTEST, sentences
from trivet.types import ProposalKind


class Statement(msgspec.Struct, frozen=True):
    """A sentence in the user's own words, and why to keep it."""

    content: str
    kind: ProposalKind
    reason: str


class Rule(msgspec.Struct, frozen=True):
    """A rule; its groups `keep_a`, `keep_b`, ... select the part to keep."""

    kind: ProposalKind
    reason: str
    pattern: re.Pattern[str]


def _rule(kind: ProposalKind, reason: str, *patterns: str) -> Rule:
    return Rule(
        kind, reason, re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    )


_SO = (
    r"^(?:(?:please|pls|plz|btw|by the way|ok|okay|also|and|so|hey|hi|oh|well|yes|but"
    r"|one more thing|fyi|"
    r"again)[,:!]?\s+)*"
)
_YOU = (
    r"(?:(?:can|could|will|would) you (?:please )?|i(?:'d like| want| need) you to "
    r"|you (?:should|must|need to) )?"
)
_BE = (
    r"(?:is|are|was|were|am|has|have|had|uses?|runs?|lives?|needs?|goes|means?|takes?|requires?"
    r"|owns?|calls?|"
    r"drops?|'s|'re|'m)"
)
# Words that refer to something on the screen and mean nothing to a later reader.
_THIS_ONE = (
    r"(?:it|this|that|these|those|them|your|yours|if|how|what|one|"
    r"the (?:first|second|third|last|other|former|latter|new|old|previous|next)\b)"
)
_DOING = (
    r"(?:use|us(?:e|ing)|add|adding|write|writing|put|putting|run|commit|push|force|mock|ask"
    r"|answer|reply|respond|"
    r"format|name|"
    r"call|include|import|create|delete|remove|change|edit|touch|update|test|deploy|merge|rebase"
    r"|squash|check|"
    r"read|explain|"
    r"show|give|keep|store|log|print|return|throw|catch|wrap|sort|prefer|follow|start|round"
    r"|restart|"
    r"build|install|"
    r"pin|document|comment|commenting|review|sign|tag|branch|generate|assume|guess|invent"
    r"|translate|quote|cite|"
    r"make|do|"
    r"send|set|leave|skip|work|speak|talk|be|take|have|avoid|refer|address|spell|indent|declare"
    r"|define|wait|"
    r"confirm|rename)"
)
_HABIT = (
    r"(?:use|write|run|deploy|merge|rebase|squash|test|mock|commit|push|name|store|log|support"
    r"|release|ship|put|"
    r"answer|review|"
    r"document|sign|tag|pin|import|hire|pay|round|publish|quote)"
)
_FILLERS = r"(?:(?:ok|okay|so|and|well|in the end),?\s+)*"
# What may precede a decision. The open-ended part occurs once; repeated, it would backtrack
# exponentially.
_FIRST = (
    rf"^{_FILLERS}(?:(?:after [^,]{{3,60}}?|i talked (?:with"
    rf"|to) [^,]{{2,40}}? and),?\s+{_FILLERS})?"
)

RULES: tuple[Rule, ...] = (
    _rule(
        "asked",
        "You asked that it be remembered.",
        _SO + _YOU + r"(?:important to )?remember(?: this| it)?(?: for [\w ]{3,20})?\s*(?::| [–—-] "
        r")\s*(?P<keep_a>.+)",
        _SO + _YOU + r"remember (?:this|it) for [\w ]{3,20},\s*(?P<keep_j>.+)",
        _SO + _YOU + r"(?:important to )?remember,? that (?P<keep_b>.+)",
        _SO
        + _YOU
        + rf"remember (?P<keep_c>(?:the|our|my|we|i|he|she|all|every|no|\w+'s)\b.*\b{_BE}\b.*)",
        _SO + _YOU + r"(?:don'?t|do not|never) forget,? that (?P<keep_d>.+)",
        _SO + _YOU + r"(?:keep|bear) in mind,? that (?P<keep_e>.+)",
        _SO + r"(?:a )?note to (?:self|yourself)\s*[:,–—-]\s*(?P<keep_f>.+)",
        _SO + _YOU + r"(?:make|take) a note,? that (?P<keep_g>.+)",
        _SO + r"(?:fyi )?for (?:future reference|later|next time"
        r"|the record)\s*[:,–—-]\s*(?P<keep_h>.+)",
        _SO
        + _YOU
        + r"(?:save|store|add|put|commit) (?:this |that |it )?(?:in|to|into) (?:your |the )?memory"
        r"\s*(?:that|[:,–—-])\s*(?P<keep_i>.+)",
    ),
    _rule(
        "correction",
        "You corrected something.",
        r"^(?:(?:no|nope|nah|wrong|incorrect|correction|not (?:quite|exactly|really)|actually"
        r"|sorry|"
        r"well)\b[,.:;!\s]++)++"
        r"(?:you (?:got|have) (?:that|it|this) wrong[,:.;]?\s*|i (?:misspoke"
        r"|was wrong)(?: earlier)?[,:.;]?\s*)?"
        rf"(?P<keep_a>(?!about|glad|great|good|thanks|use|try|put|take|go|make|do|keep|i\b|you\b"
        rf"|there\b|the "
        rf"(?:test|build|page|plot|output|"
        rf"server)s?\b)(?:the|our|my|we|it'?s|its|tests|\w+) "
        rf".*(?:(?:,|\band|;) (?:it'?s |it is )?(?:not|never) (?!too|so|very|yet|really|sure"
        rf"|working|up|there|that|"
        rf"this)|\b{_BE}\b.*(?:instead of|rather than|any ?more|"
        rf"these days|no longer"
        r"|(?-i:\s[A-Z0-9]).*\bnow\b)).*)",
        r"^(?:not quite|not exactly|correction)[,:]\s+(?P<keep_b>(?:the|our|my|we|it'?s) .+)",
        r"^(?:you (?:got|have) (?:that|it|this) wrong|i misspoke(?: earlier)?"
        r"|i was wrong(?: earlier)?|"
        r"wrong (?:repo|host|server|branch|name|number|port|person|team))[,:.;]\s*"
        rf"(?P<keep_c>.+\b{_BE}\b.+)",
        r"^(?P<keep_d>(?:the|our|my) .+ (?:isn'?t|aren'?t|is not|are not|is no longer"
        r"|are no longer) .+"
        r"(?:any ?more|,? (?:it|they)'?(?:s|re)? .*now)\b.*)",
    ),
    _rule(
        "decision",
        "You said what was decided.",
        _FIRST + r"(?:we|the team)(?:'ve| have|'re all)? (?:just |now |finally |also |all )?"
        r"(?:decided|settled on|agreed|opted|chose (?=.*\b(?:over|because|instead of"
        r"|rather than)\b))\b(?! (?:yet|"
        r"whether|if|nothing|later|this|it|to disagree|on (?:that|it|this)|that (?:already|before"
        r"|earlier|"
        r"together|then))\b).{8,}",
        _FIRST
        + r"i(?:'ve| have) decided (?:to (?:use|keep|drop|go with|switch|move|adopt|stick|support)"
        r"|on|"
        r"against|that)\b.{6,}",
        _FIRST + r"we (?:made|have|'ve made) (?:it )?a (?:strict |hard |firm )?rule\b.{8,}",
        r"^(?:the )?(?:final )?(?:decision|call|verdict|conclusion)(?: (?:of|from) [\w' "
        r"]{3,30})?\s*[:–—]\s*(?P<keep_a>.+)",
        r"^so the (?:final )?(?:decision"
        r"|conclusion)(?: of [\w ]{3,30})?(?: is)?\s*[:,–—]?\s*(?P<keep_b>.+)",
        r"^let'?s settle (?:this|that|it)\s*[:,–—]\s*(?P<keep_c>.{12,})",
        _FIRST + r"we(?:'re| are) (?:now )?"
        r"(?:going to (?:drop|move|migrate|switch|support|stop|replace|adopt)"
        r"|standardi[sz]ing on|switching to|moving (?:to|off|away from)|migrating to|dropping"
        r"|sticking with|"
        r"keeping)\b.{6,}",
        r"(?:^|\band |[,;] )we (?:will not|won'?t|will never|'ll never) (?:use|store|keep|ship"
        r"|support|build|host|"
        r"translate|offer|accept|publish|"
        r"deploy|release|"
        r"move|migrate|switch|adopt)\b.{6,}",
        r"^we(?:'ll| will) (?:use|store|ship|support|host|deploy|release|stick with)\b.{6,}"
        r"\b(?:instead of|rather than|for all|everywhere|and not|not before|in production"
        r"|audit log)\b.*",
        r"^(?:please,? )?(?:from (?:now|here) on|going forward|henceforth)\b(?!,? (?:you'?re"
        r"|you are|it|this|that|"
        r"i)\b).{10,}",
        r"^let'?s (?:use|go with|stick with|stay with|adopt|standardi[sz]e on) (?!this|that|it\b"
        r"|these|those|the "
        r"\w+ one).{4,}\b(?:from (?:now|here) on|"
        r"for all|everywhere|"
        r"across (?:all|the)|in all|going forward)\b.*",
        r"^the plan is to (?:move|migrate|switch|replace|drop|release|ship|support|retire"
        r"|sunset)\b.{8,}",
    ),
    _rule(
        "preference",
        "You said how you want it.",
        rf"^i (?:really |much |strongly |generally |usually )?prefer (?!{_THIS_ONE}\b|a mix\b"
        rf"|both\b|being\b|"
        rf"when\b|not\b|to\b).{{4,}}",
        r"^prefer .{3,} over .{3,}",
        r"^i(?:'d| would) (?:much )?rather (?!you\b).+ than .+",
        r"^i (?:really )?(?:hate|dislike|don'?t like|can'?t stand|do not like) "
        rf"(?:it when (?:you|people|we)\b.{{4,}}|(?!{_THIS_ONE}\b|the\b|where\b|when\b|who\b|why\b"
        rf"|to\b)(?:\w+ "
        rf")?\w+(?:s|ing)\b.{{2,}})",
        rf"^i (?:really )?like (?:my|all|our) (?!{_THIS_ONE}\b).{{6,}}",
        r"^i (?:always|never) want (?:to see|you to)\b.{6,}",
        _SO + rf"(?:make sure (?:you |to |that you )?)?(?:always|never|don'?t ever"
        rf"|do not ever) {_DOING}\b.{{4,}}",
        _SO + rf"{_DOING} .{{6,}}[, ]+always[.!]?$",
        r"^(?:please )?(?:don'?t|do not) use .{3,60}, (?:we|i) (?:have|use|don'?t|never"
        r"|always)\b.{3,}",
        rf"^(?:in (?:this|our) (?:project|repo|repository|team|codebase|code base|company"
        rf"|house)[, ]+)?"
        rf"we (?:always|never|only) {_HABIT}\b.{{4,}}",
        r"^in (?:this|our) (?:project|repo|repository|team|codebase|code base"
        r"|company) we (?!have\b|had\b|need\b|"
        r"see\b|get\b|got\b).{6,}",
        r"^we(?:'re on| are on| run| use| write| don'?t (?:use|do|write|mock)) .{3,}\bin (?:this"
        r"|our) "
        r"(?:project|repo|repository|team|codebase|code base|company)\b.*",
        r"^we (?:use|write|name|keep|put|run|prefer|avoid|follow|call)\b.{4,}"
        r"(?:\bhere\b[.!]?$|instead of|rather than|, not\b|and not\b).*",
        r"^(?:our|the) (?:convention|rule|policy|standard|guideline|style) is\b.{8,}",
        r"^i (?:usually|normally|typically|generally|mostly|always|never) (?:work|write|use|answer"
        r"|deploy|commit|"
        r"review|test|avoid|speak|merge)\b.{4,}",
        rf"^when(?:ever)? you [^,]{{4,80}}, (?:please |always |never "
        rf"|also )*(?:don'?t )?{_DOING}\b.{{3,}}",
        r"^(?:please )?call me (?!back|when|if|later|crazy|old)\w+.*",
        r"^my (?:(?:preferred|favou?rite) [\w ]{2,30}|name|pronouns|time ?zone|role|job|title"
        r"|manager|native "
        r"language|first language|"
        r"keyboard layout|working hours) (?:is|are)\b.{2,}",
        r"^(?:please )?stop (?:using|writing|putting|commenting|apologi[sz]ing"
        r"|importing) .{4,}, (?:we|i|use|"
        r"it)\b.{4,}",
    ),
    _rule(
        "workaround",
        "You said how a problem is solved or avoided.",
        r"^(?:so |ok,? |and )?the (?:workaround|trick|fix|solution|root cause|culprit|catch"
        r"|cause)\b[^.]{0,30}?"
        r" (?:is to (?!be\b)|was to (?!be\b)|was an?|was the|is that|was that"
        r"|turned out to be)\b.{8,}",
        r"^(?:so |ok,? |and )?(?:it |the answer )?(?:turns|turned) out,? (?:that |to be )?"
        r"(?!i\b|my\b|he\b|she\b|they\b|you\b|we\b|it was (?:me|just|only)|just\b)"
        r"(?=.*\b(?:caused|needs?|because|breaks?|fails?|missing|requires?|must|only|bug|setting"
        r"|version|solved|"
        r"fixed|so)\b).{15,}",
        r"^i found (?:it|the (?:cause|reason|bug|problem))\s*[:,–—]\s*(?P<keep_b>.{15,})",
        r"^(?:the|our|it) .*\bonly works? (?:if|when|with|after|on)\b.{6,}",
        r"^(?:the|our) .{3,60}\b(?:fails?|breaks?|crash(?:es)?|hangs?"
        r"|times? out) .{0,40}\bunless you\b.{6,}",
        r"^to (?:get|work) around .{4,}\b(?:we|you|i|just)\b.{6,}",
        r"^you (?:have to|must) (?:run|start|set|install|restart|seed|build|log in|be on)\b.{4,}"
        r"\b(?:before|otherwise|or (?:else|they|it|you))\b.{4,}",
        r"^(?:if|when) (?:the|your|it|a|an) .{3,60}?"
        r"\b(?:hangs?|fails?|crash(?:es)?|breaks?|is stuck|gets stuck|times? out"
        r"|won'?t start)\b.{0,30}, "
        r"(?:just |then |please )?(?:restart|delete|re-?run|clear|reboot|kill|reinstall|wipe"
        r"|prune)\b.{6,}",
        r"^(?:gotcha|heads[ -]up|caveat|watch out|beware|solved|pitfall|just so you know|note|"
        r"fyi)\s*[:,–—-]\s*(?P<keep_a>(?!\s*(?:i\b|ignore\b)).{12,})",
        r"^(?:the|our) .{3,60}\bneeds? .{3,80}, (?:(?:without (?:it|that)|otherwise|or else)\b.{4,}"
        r"|it (?:crashes|fails|breaks|hangs)\b.{4,})",
        r"^.{15,}\b(?:that|which) (?:solved|fixed) (?:it|the)\b.*",
    ),
)

_question = re.compile(
    r"\?\s*$|^(?:what|why|how|who|where|which|when (?:do|did|does|is|are|will|can|should)\b|should"
    r"|could|can|"
    r"would|do|does|did|is|are|"
    r"has|have|will)\b(?!.*\bremember that\b)",
    re.IGNORECASE,
)
# An immediate task on what is being discussed.
_at_once = re.compile(
    r"\b(?:restore|revert|redo|undo|rename|move|delete|remove|change|make|do|try|fix|answer"
    r"|extract|apply|put|"
    r"keep|finish)"
    r" (?:it|this|that|them|again)\b|\.\.\.$|\btake a look\b|[:;]-?[)(DP]|\b(?:find|see) (?:it"
    r"|above|below)\b"
    # "This button" is on the screen now; "this project" will exist next week.
    r"|\bthis (?!project|repo|repository|team|codebase|code base|company|house|is\b)\w+"
    r"|\bthe (?:other|left|"
    r"right) \w+",
    re.IGNORECASE,
)
_guess = re.compile(
    r"\b(?:maybe|perhaps|might|i think|i guess|i believe|i suppose|not sure|i wonder|what if"
    r"|probably|possibly|"
    r"haven'?t decided|"
    r"not decided|undecided|imagine|suppose|let'?s say|hypothetically|for example|e\.g\."
    r"|could decide|if we "
    r"(?:decided|chose|used))\b",
    re.IGNORECASE,
)
_moment = re.compile(
    r"\b(?:(?:for|in|to|on) this (?:pr|file|commit|test|function|one|branch|change|task|script"
    r"|page|screenshot|"
    r"chat|conversation|"
    r"session|component|class|method|line|demo|sprint|message)|just this once|this (?:time|once)"
    r"|for now|right "
    r"now|here instead|"
    r"until i say|today|tonight|yesterday|this (?:morning|afternoon|evening|weekend|week)|tomorrow"
    r"|a break|back "
    r"in|all good|"
    r"never mind|fix (?:this|that|it)|mock data|again, it)\b",
    re.IGNORECASE,
)
# In a correction, decision or workaround, these words make the sentence a task.
_wish = re.compile(
    r"\b(?:please|pls|should|undo|ignore|rebase|investigate|look at|the \w+ one|can you|could you"
    r"|read it)\b",
    re.IGNORECASE,
)
_task = re.compile(
    r"^(?:please |now |then |ok,? |and )*(?:write|generate|translate|summari[sz]e|explain|imagine"
    r"|describe|"
    r"implement|refactor|rename|"
    r"continue|pretend|list|find|show|give|draw|rewrite|paraphrase|proofread|complete)\b",
    re.IGNORECASE,
)
# Starts with a pronoun that refers to the previous sentence.
_dangling = re.compile(
    r"^(?:it|this|that|they|these|those|he|she|him|her|them)\b(?!'s \w+ who\b)", re.IGNORECASE
)
_corrects = re.compile(
    r"^(?:no+|nope|wrong|that'?s (?:wrong|not (?:right|true|correct))|not quite|incorrect"
    r"|you got (?:that|it) "
    r"wrong)\W*$",
    re.IGNORECASE,
)
# "Can you remember that ...?" is a request; "Remember that book?" is not.
_request = re.compile(r"\b(?:can|could|will|would) you\b", re.IGNORECASE)
_FEWEST_WORDS = 4
_short_but_whole = re.compile(r"(?:please )?(?:call me|my )", re.IGNORECASE)


def statements(message: str) -> list[Statement]:
    found: dict[str, Statement] = {}
    with_previous = list(sentences(message))
    # A message that asks for help describes a problem, not a lasting fact.
    asks = any(sentence.endswith("?") for sentence, _ in with_previous)
    for sentence, before in with_previous:
        statement = _statement(sentence, before)
        if statement is not None and not (asks and statement.kind in ("preference", "workaround")):
            found.setdefault(statement.content, statement)
    order = [rule.kind for rule in RULES]
    return sorted(found.values(), key=lambda one: order.index(one.kind))


def _statement(sentence: str, before: str) -> Statement | None:
    if not SHORTEST <= len(sentence) <= LONGEST:
        return None
    corrected = bool(_corrects.match(before))
    for rule in RULES:
        text = f"No, {sentence}" if corrected and rule.kind == "correction" else sentence
        match = rule.pattern.search(text)
        if match is None or (rule.kind != "asked" and _ruled_out(sentence)):
            continue
        if rule.kind in ("correction", "decision", "workaround") and _wish.search(sentence):
            continue
        if rule.kind == "asked" and sentence.endswith("?") and not _request.search(sentence):
            continue
        content = _content(match, sentence, before)
        if content is not None:
            return Statement(content, rule.kind, rule.reason)
    return None


def _ruled_out(sentence: str) -> bool:
    return any(
        pattern.search(sentence) for pattern in (_question, _guess, _moment, _task, _at_once)
    )


def _content(match: re.Match[str], sentence: str, before: str) -> str | None:
    kept = next((text for name, text in match.groupdict().items() if text), sentence).strip(
        " ,;:–—-"
    )
    if len(kept.split()) < _FEWEST_WORDS and not _short_but_whole.match(kept):
        return None
    kept = kept[0].upper() + kept[1:]
    if _dangling.match(kept):
        if not before or len(before) + len(kept) > LONGEST:
            return None
        kept = f"{before} {kept}"
    return kept if kept[-1] in ".!?" else f"{kept}."
