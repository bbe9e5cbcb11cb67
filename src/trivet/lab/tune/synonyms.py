"""Words that say nearly the same and share no stem: written for probes by hand, so that no leg chose them.

Each line is a group; any word of it may stand for any other. Besides synonyms there are abbreviations and relatives
that the stemmer keeps apart (decide, decision).
"""

from __future__ import annotations

from functools import cache

from trivet.analyse import analyse

GROUPS = """
delete remove erase
add insert append
change alter modify
make create build
start begin launch
stop halt end
fix repair mend
break damage
bug defect fault
error failure mistake
fail crash
problem trouble issue
answer reply respond response
ask question request
show display present
hide conceal mask
send transmit deliver
receive get obtain
buy purchase
sell sale
choose choice select pick
decide decision
know knowledge
explain explanation
describe description
maintain maintenance upkeep
analyse analysis examine
grow growth increase
shrink decrease reduce
allow permit
forbid prohibit ban
use employ utilise
need require
want wish
like prefer preference
dislike hate
help assist support
try attempt
keep retain preserve
lose loss
find locate discover
search lookup
store save
copy duplicate
move shift relocate
replace swap substitute
merge combine join
split divide separate
check verify
test trial
measure gauge
count number tally
limit cap bound
maximum max ceiling
minimum min floor
fast quick rapid speedy
slow sluggish
big large huge
small little tiny
new recent fresh
old former outdated
good fine
bad poor
important crucial essential
hard difficult
easy simple
wrong incorrect
right correct
empty blank
whole entire complete
part piece portion
main primary chief
backup spare fallback
meeting appointment
talk conversation chat
call phone telephone
message note
email mail
letter post
person human
customer client
colleague coworker teammate
boss manager
owner holder
team group crew
company firm business
office workplace
job work occupation
task chore assignment
plan schedule timetable
deadline cutoff
date day
weekly week
monthly month
yearly annual year
morning dawn
evening night
holiday vacation
trip journey travel
house home
flat apartment
room chamber
street road
city town
country nation
car automobile vehicle
train railway
flight plane
food meal dish
dinner supper
doctor physician
medicine drug
child kid
money cash
price cost
bill invoice
pay payment
salary wage
tax duty
contract agreement
rule policy regulation
law legal
password passphrase credential
secret confidential
key token
access entry
user account
login signin
log journal record
report summary
picture image photo
book volume
list catalogue
table grid
file document
folder directory
path route
page sheet
link url
server host machine
database db
configuration config settings
repository repo
documentation docs manual
environment env
production prod live
development dev
administrator admin
application app program
authentication auth
authorisation permission
kubernetes k8s
container docker
library package
dependency requirement
version release
deploy rollout ship
branch fork
commit revision
review inspection
function method procedure
variable parameter
thread process
queue backlog
cache buffer
memory ram
disk drive storage
network net
port socket
timeout expiry
retry repeat
alert alarm warning
monitor watch observe
metric statistic
query lookup
index catalog
schema layout structure
migrate migration
encrypt cipher
compress pack zip
parse read
write author
editor ide
keyboard shortcut
screen display
default standard
option choice
example sample
reason cause why
goal aim target
result outcome
idea thought
rename relabel
laptop notebook computer
vendor supplier
upgrade update
disable deactivate
enable activate
"""


@cache
def _equivalents() -> dict[str, tuple[str, ...]]:
    """By stem, so that an inflected word finds its group; a word never gets one of its own stem back."""
    found: dict[str, dict[str, None]] = {}
    for row in GROUPS.strip().splitlines():
        group = row.split()
        for word in group:
            stem = _stem(word)
            found.setdefault(stem, {}).update({other: None for other in group if _stem(other) != stem})
    return {stem: tuple(others) for stem, others in found.items()}


def equivalents(word: str) -> tuple[str, ...]:
    """What may stand for the word, or nothing if the table does not know it."""
    return _equivalents().get(_stem(word), ())


def _stem(word: str) -> str:
    return (analyse(word) or (word,))[0]
