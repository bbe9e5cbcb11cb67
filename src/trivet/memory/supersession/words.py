"""Patterns and word lists for comparing statements, matched on folded text without apostrophes."""
# ruff: noqa: E501 - regular expressions and word lists

from __future__ import annotations

import re

# The writer says that something differs from before.
CHANGE_CUES = re.compile(
    r"\b(?:no longer|any ?more|any longer|instead|rather than|used to|after all|former(?:ly)?|previous(?:ly)?|"
    r"mov(?:ed|es|ing)|relocat\w+|migrat\w+|switch(?:ed|es|ing)?|swap(?:ped|s)?|replac\w+|renamed|rewritten|convert\w+|"
    r"chang(?:ed|es|ing|e of)|correct(?:ed|ion)|updated?|adjusted|revis(?:ed|ion)|supersed\w+|upgrad\w+|downgrad\w+|"
    r"bump(?:ed|s)|rais(?:ed|es)|increas\w+|grown|lower(?:ed|s)|reduced|cut to|exten(?:ded|sion)|shortened|doubled|"
    r"halved|postponed|rescheduled|delayed|slipped|shift(?:ed|s)|pushed (?:back|to)|brought forward|elected|"
    r"cancell?ed|called off|abandoned|dropped|gave up|given up|stopped|quit|retired|discontinued|deprecated|"
    r"deleted|removed|revoked|gone|expired|lost|died|sold|shut|split up|divorced|married|promoted|joined|hired|"
    r"started as|t(?:ook|akes|aken) over|taking over|handed over|decided against|turned out|succeed(?:s|ed)|turned|"
    r"finished|completed|done|fixed|repaired|resolved|closed|merged|signed|booked|left|back from|got back)\b"
)
# The writer says that something is true from now on.
RECENCY_CUES = re.compile(
    r"\b(?:now|nowadays|these days|by now|as of|from now on|from then on|since|starting|effective|meanwhile|"
    r"new|latest|currently|again|lately|recently|already|going forward|henceforth|until further notice|today|"
    r"this (?:week|month|year|season|term|school year|summer|winter|spring|autumn)|"
    r"from (?:mid |early |late )?(?:january|february|march|april|may|june|july|august|september|october|november|"
    r"december|next))\b"
)
START_DATE_CUES = re.compile(
    r"\b(?:from|as of|starting|since|effective|beginning)\b[^.;\d]{0,24}\d"
)
# Explicit statements of a change, without verbs of ordinary chat ("done", "fixed", "left", "now").
# Until pair probabilities are calibrated on whole stores, an update must match.
EXPLICIT_CHANGE = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|from now on|going forward|until further notice|instead of|rather than|"
    r"as of|effective|used to|formerly|previously|renamed|supersed\w+|replac(?:ed|es)|relocated|rescheduled|postponed|"
    r"called off|cancell?ed|deprecated|discontinued|decommissioned|retired|revoked|reverted|rolled back|"
    r"upgraded|downgraded|(?:moved|moves|migrated|migrates|switched|switches|changed|changes|converted) "
    r"(?:\w+ ){0,4}?(?:to|from|over|off|away)|(?:raised|lowered|increased|reduced|cut|bumped|extended|shortened) "
    r"(?:\w+ ){0,2}?(?:to|from|by)|since (?:january|february|march|april|may|june|july|august|september|october|"
    r"november|december|spring|summer|autumn|winter|(?:19|20)\d\d|last|this)|"
    r"from (?:the )?\d{1,2}\.? (?:january|february|march|april|may|june|july|august|september|october|november|"
    r"december))\b"
)
# The writer adds to an earlier statement, or gives a reason.
ADDITION_CUES = re.compile(
    r"\b(?:also|too|as well|additional(?:ly)?|besides|in addition|another|second|other|both|moreover|on top|further|"
    r"plus|exception|except|but|only for|because|in particular)\b"
)
CONFIRMATION_CUES = re.compile(
    r"\b(?:still|remains?|stays?|unchanged|as before|confirmed|continues?|keeps?)\b"
)
PLAN_CUES = re.compile(
    r"\b(?:plan(?:s|ned|ning)?|wants? to|going to|intends?|will|would like|hopes?|considering|thinking of|due|should)\b"
)
NEGATION_CUES = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|cannot|without|neither|nor|stop(?:s|ped)?|avoid|against|forbid\w*|"
    r"(?:do|does|did|is|are|was|were|has|have|had|wo|would|could|should|ca|must|need|ai)nt)\b"
)
# The captured words are no longer true: "not Ines", "instead of 15", "Blum has closed".
REJECTED_AFTER_CUE = re.compile(
    r"\b(?:not|no|instead of|rather than|than|from|replac(?:ed|es|ing)|dropped|against|former|without|over|until|of|"
    r"never|spare|stopped|out of)(?: (?:the|a|an|my|our|with|in|on|to|at|me)){0,3} ([\w.:/-]+)(?: ([\w.:/-]+))?"
)
REJECTED_BEFORE_CUE = re.compile(
    r"(?<![\w.:/-])([\w.:/-]+)(?: ([\w.:/-]+))? (?:(?:is|are|was|were|has|have|been|files?|booking|must) ){0,3}"
    r"(?:gone|closed|ended|ends|ending|deleted|retired|removed|revoked|refunded|cancelled|canceled|taken|moved|fails?|"
    r"not|no longer|redirects?|comes? back|lost|left|stopped|dropped|could not|shut|off)\b"
)
# An event stays true when another follows; a state does not.
EVENT_CUES = re.compile(
    r"\b(?:went|met|lost|won|beat|paid|bought|sold|read|ate|found|chose|agreed|saw|told|said|came|gave|took|swarmed|"
    r"broke|fell|had|did|started|fixed|failed|visited|attended|celebrated|planted|finished|watched|learnt|learned|"
    r"discussed|talked|asked|called|ordered|sent|made|built|wrote|closed|released|happened|was|were|delivered|brought|"
    r"timed out|handed in|went out|came out|\w{3,}(?:pp|nn|tt|rt|nt|d|pl|v|sh|ck|ct|ss)ed)\b"
)
STATE_CUES = re.compile(
    r"\b(?:is|are|am|has|have|do|does|will|can|may|must|should|shall|need|needs|prefer|prefers|use|uses|live|lives|"
    r"run|runs|work|works|isnt|arent|dont|doesnt|always|never|every|each|now)\b"
)
DATE_CUES = re.compile(
    r"\b(?:19|20)\d\d\b|\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\b(?:on|in) (?:january|"
    r"february|march|april|june|july|august|september|october|november|december)\b"
)

_months = "january|february|march|april|june|july|august|september|october|november|december"
# Bounded, since "1.1.1.1..." without a unit would take quadratic time.
_amount = r"\d[\d.,]{0,24}"
# By form, most specific first. Statements about one matter have values of the same kind.
VALUE_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("address", re.compile(r"\b\w{2,12}://\S+|(?<![\w-])[\w-]++(?:\.[\w-]++){0,4}\.(?:com|org|net|io|dev|example|local|ch|de)\b")),
    ("mail", re.compile(r"(?<!\S)[\w.+-]+@\w\S+")),
    ("path", re.compile(r"(?<![\w/])[~.]{0,2}/\w[\w./-]*")),
    ("key", re.compile(r"\b(?:0x[0-9a-f]+|[a-z]{1,6}-\d+|\d+(?:-\d+){2,9})\b")),
    ("phone", re.compile(r"\b\d{3,5}(?: \d{2,7}){1,4}\b")),
    ("time", re.compile(r"\b\d{1,2}[:.]\d\d(?= ?(?:h|uhr|am|pm)?\b)|\b(?:noon|midnight)\b|\b\d{1,2} ?(?:am|pm|oclock)\b"
                        r"|(?<= at )\d{1,2}\b")),
    ("date", re.compile(rf"\b\d{{1,2}}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*|\b(?:{_months})\b|"
                        r"\b\d{1,2}(?:st|nd|rd|th)\b")),
    ("year", re.compile(r"\b(?:19|20)\d\d\b(?![.,:]\d)")),
    ("day", re.compile(r"\b(?:mon|tues?|wed|thu|thurs|fri|sat|sun)(?:day|nesday|sday|rsday|urday)?s?\b|\bweekends?\b")),
    ("money", re.compile(rf"(?:[€$£]|\b(?:eur|euros?|chf|usd|dollars?|pounds?|francs?)) ?{_amount}|\b{_amount} ?"
                         rf"(?:[€$£]|(?:euros?|eur|chf|usd|dollars?|pounds?|francs?|cents?)\b)")),
    ("percent", re.compile(rf"\b{_amount} ?(?:%|percent\b|per cent\b)")),
    ("length", re.compile(rf"\b{_amount} ?(?:ms|s|seconds?|minutes?|min|hours?|days?|nights?|weeks?|months?|years?)"
                          r"\b")),
    ("size", re.compile(rf"\b{_amount} ?(?:[kmg]?b|kg|g|ml|l|km|m|cm|mm|litres?|metres?|degrees?|inch)\b")),
    ("version", re.compile(r"\bv?\d+\.\d+(?:\.\d+){1,3}\b|(?<=[a-z] )\d+\.\d+\b")),
    ("number", re.compile(r"\b\d[\d.,]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|"
                          r"once|twice|half|dozen|hundred)\b")),
)  # fmt: skip
VALUE_PATTERNS_WITHOUT_DIGITS = tuple(
    (kind, pattern)
    for kind, pattern in VALUE_PATTERNS
    if kind in ("address", "mail", "path", "time", "date", "day", "number")
)

# Two states that cannot both be true of one thing.
_OPPOSITES = (
    "always never, enabled disabled, on off, true false, allowed forbidden, open closed, before after, yes no, "
    "optional required, public private, manual automatic, with without, more less, vegetarian meat, short long, "
    "married divorced, ill healthy, free paid, dark light, may must, like dislike, broken works, off on"
)
# Two words of one group are two separate things, not two values of one.
_COEXISTING = (
    "staging production prod test testing development dev local ci build preview sandbox live demo qa main "
    "pre-production",
    "mother father mum mom dad brother sister son daughter cousin uncle aunt grandma grandmother grandpa grandfather "
    "wife husband partner neighbour neighbor niece nephew",
    "kitchen bathroom bedroom garden garage cellar attic hall office home upstairs downstairs balcony shed gate",
    "ios android windows mac macos linux web mobile desktop browser",
    "frontend backend client server api database",
    "eu us uk asia europe america",
    "north south east west left right upper lower front rear top bottom inner outer",
    "first second third fourth fifth last one two",
    "monthly yearly weekly daily hourly annual",
    "adult adults child children kids student students senior seniors junior juniors member members guest guests "
    "family families",
    "cat dog horse rabbit bird fish hamster",
    "read write primary replica admin user",
    "breakfast lunch dinner morning evening afternoon night noon weekend weekends weekday weekdays week",
    "winter summer spring autumn",
    "car bike bicycle van motorbike train bus",
    "red green blue yellow white black grey gray orange brown small large big",
    "opens closes leaves lands arrives departs starts ends begins",
)
# The first of these verbs ends the subject of a statement.
VERBS = frozenset(
    """
    is are was were be been am isnt arent wasnt has have had hasnt havent do does did dont doesnt didnt will wont would
    shall should can cannot cant could may might must mustnt needs need takes take took taken goes go went happens
    happen starts start started begins begin opens open closes close runs run ran uses use used lives live lived works
    work worked listens listen costs cost keeps keep kept stays stay lies sits stands stand wears wear plays play
    speaks speak likes like loves love hates hate prefers prefer wants want owns own reviews review reports report calls
    call called handles handle supports support sells sell requires require expires expire pays pay paid moved moves
    move switched switches changed changes took became becomes become means mean gets get got gave gives give leaves
    leave left lands land arrives ships ship shipped drinks drink eats eat sleeps sleep reads read writes write wrote
    trains train drives drive cycles studies teaches leads lead manages manage contains contain includes include belongs
    comes come came says say said decided decide chose choose agreed agree plans plan planned found find replaced
    replaces dropped drop stopped stop retired hurt answers answer sends send stores store expects expect holds hold
    shows show returns return accepts accept allows allow ends end ended slipped fixed fixes fix failed fails lost met
    raised raise extended bought buy sold visits visit owes employs serves serve feeds feed meets meet hosts host bakes
    turns turn closes weighs weigh maintains maintain teaches grows grow begins learned learnt
    """.split()
)
# Verbs with several objects: who plays the violin may also play the piano.
MULTI_VALUED_VERBS = frozenset(
    """
    has have speaks speak plays play likes like loves love sells sell supports support handles handle reads read knows
    know includes include contains contain offers offer logs logged uses use visits visited met meet owns own grows grow
    collects collect serves serve provides provide needs need bought buys enjoys enjoy covers cover hates hate eats
    returns return learned
    """.split()
)

OPPOSITE_OF = {
    one: other
    for pair in _OPPOSITES.split(", ")
    for one, other in (pair.split(" "), pair.split(" ")[::-1])
}
GROUP_OF = {word: number for number, group in enumerate(_COEXISTING) for word in group.split()}

SENSES = {
    "turned": CHANGE_CUES,
    "fresh": RECENCY_CUES,
    "added": ADDITION_CUES,
    "confirmed": CONFIRMATION_CUES,
    "planned": PLAN_CUES,
    "negated": NEGATION_CUES,
    "event": EVENT_CUES,
    "state": STATE_CUES,
}
# First words of the phrases in these patterns.
PHRASE_STARTS = frozenset(
    """
    no any rather used after pushed brought called gave given split started took takes taken taking handed decided
    turned back got cut change these by as from going until this in on only wants want would thinking timed went came
    """.split()
)
REJECTION_WORDS = frozenset(
    """
    not no instead rather than from replaced replaces replacing dropped against former without over until of never
    spare stopped out gone closed ended ends ending deleted retired removed revoked refunded cancelled canceled taken
    moved fail fails longer redirect redirects back lost left shut off
    """.split()
)
