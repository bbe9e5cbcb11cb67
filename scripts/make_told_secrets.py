"""Write tests/unit/secrets/told_secrets.jsonl and told_harmless.jsonl: secrets as people tell them.

They appear in several languages, on command lines, in tool configurations, and over several lines.
The rules were tuned on the half `tune`; the half `test` was written before them with other words
and tools. On its first run 49 of its 50 secrets were found and 2 of its 65 harmless texts were
flagged. One of the two did contain an access key id, which was removed; then both were fixed.

Values come from a seeded generator and open nothing. A secret stands between « and »; texts are
stored in parts, cut within the secret, so that scanners of repositories find no leak.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import string
from importlib.resources import files
from pathlib import Path

SEED = 20_261_116
ALNUM = string.ascii_letters + string.digits
draw = random.Random(SEED)

TUNE = r"""
aws-secret-key|{akia} / «{aws}»
aws-secret-key|Deploy user: {akia} | «{aws}» | eu-west-1
aws-secret-key|access key {akia}, secret «{aws}»
aws-secret-key|{akia}\n«{aws}»
password|The password in the office is «{pw}».
password|the wifi password for guests is «{pw}»
password|Root password on the new box: «{pw}»
password|Password of the VPN (old one): «{pw}»
password|We set the password for the admin account to «{pw}» yesterday.
password|The password you need there is «{pw}», same as last year.
password|Mira changed the Grafana password; it is «{pw}» now.
password|login bob, password «{pw}»
password|Das Passwort für den Drucker lautet «{pw}».
password|Passwort vom WLAN im Keller: «{pw}»
password|Das Kennwort des Testservers ist «{pw}»
password|Zugang zum NAS: Benutzer anna, Passwort «{pw}»
password|le mot de passe du wifi est «{pw}»
password|la contraseña del router es «{pw}»
password|La password del NAS è «{pw}»
password|machine api.acme.dev login bob password «{pw}»
password|machine git.acme.dev\n  login deploy\n  password «{pw}»
password|default login anonymous password «{pw}»
password|mysql -u root -p«{pw}» shop
password|mysqldump --user=backup -p«{pw}» --all-databases > all.sql
password|mariadb -uroot -p«{pw}» -e 'show tables'
password|sshpass -p «{pw}» ssh root@10.0.0.7
password|sshpass -p'«{pw}»' scp dump.sql deploy@web1:
password|redis-cli -h cache1 -a «{pw}» ping
password|docker login -u bob -p «{pw}» registry.acme.dev
password|smbclient //files/share -U bob%«{pw}»
password|ldapsearch -D cn=admin,dc=acme -w «{pw}» -b dc=acme
password|unzip -P «{pw}» reports.zip
password|openssl rsa -in key.pem -passin pass:«{pw}»
password|net use Z: \\files\share /user:acme\bob «{pw}»
github-token|the bot uses «ghp_{a18}\n{a18}» in CI
github-token|token = "«ghp_{a20}" \\n    "{a16}»"
openai-key|The key, wrapped by the mail client: «sk-proj-{a24}\n{a24}»
token|API_TOKEN="«{h20}\\n{h20}»"
seed-phrase|«{seed12}»
seed-phrase|My wallet's seed phrase: «{seed24}»
seed-phrase|recovery words: «{seednum12}»
seed-phrase|Ledger backup\n«{seedcomma12}»
pin|The PIN of the alarm is «{d4}».
pin|door code «{d4}#» for the side entrance
pin|SIM card: PUK «{d8}»
pin|voicemail PIN: «{d4}»
pin|The unlock code for the old phone is «{d6}»
pin|Code for the bike lock: «{d4}»
token|api_key = "«{a10}12345678{a10}»"
github-token|CI pushes with «ghp_{a10}12345678{a18}»
""".strip()

TEST = r"""
aws-secret-key|keys for s3: {akia} -> «{aws}»
aws-secret-key|id={akia};key=«{aws}»
aws-secret-key|({akia}, «{aws}»)
aws-secret-key|AWS: {akia} : «{aws}» (Oregon)
password|Her laptop's password at school was «{pw}» until June.
password|the admin password on the printer downstairs is still «{pw}»
password|password for Netflix = «{pw}»
password|Our shared Adobe password: «{pw}»
password|I reset my password to «{pw}», don't tell anyone
password|The passphrase of the backup disk reads «{pw}»
password|Use «{pw}» as the password for the demo account.
password|user: carla / pass: «{pw}»
password|Passwort für die Fritzbox ist jetzt «{pw}»
password|Das neue Passwort von Jonas heißt «{pw}»
password|Kennwort Gastzugang: «{pw}»
password|Benutzername: m.keller, Passwort: «{pw}»
password|Voici le mot de passe de la base : «{pw}»
password|La contraseña de la oficina ahora es «{pw}»
password|A senha do servidor é «{pw}»
password|Het wachtwoord van de wifi is «{pw}»
password|machine ftp.example.org login stats account x password «{pw}»
password|mysqladmin -h db2 -u root -p«{pw}» status
password|mysql --user=app --password=«{pw}» shop
password|sshpass -p "«{pw}»" rsync -a ./ backup@nas:/vol
password|SSHPASS=«{pw}» sshpass -e ssh ops@bastion
password|curl --user deploy:«{pw}» https://repo.acme.dev/upload
password|wget --user=anna --password='«{pw}»' https://files.acme.dev/a.zip
password|PGPASSWORD=«{pw}» pg_dump shop
password|mongosh --username root --password «{pw}» admin
password|7z x -p«{pw}» photos.7z
password|htpasswd -b .htpasswd clara «{pw}»
password|echo «{pw}» | sudo -S apt upgrade
password|psql: role app, pw «{pw}»
gitlab-token|the runner registers with «glpat-{a12}\n  {a12}»
slack-token|bot token (two lines in the PDF):\n«xoxb-{d12}-{d12}-\n{a24}»
npm-token|npm: «npm_{a18}\\n{a18}»
anthropic-key|key = ("«sk-ant-api03-{a40}"\n       "{a40}»")
seed-phrase|Metamask: «{seed12}»
seed-phrase|The mnemonic for the test wallet is "«{seed15}»" (keep it safe)
seed-phrase|Paper wallet\n«{seedlines12}»
seed-phrase|Write down: «{seed24}»
pin|My debit card's PIN is «{d4}»
pin|garage keypad: code «{d6}»
pin|PUK for the work SIM: «{d8}»
pin|The combination of the safe is «{dash3}»
pin|Türcode Seiteneingang: «{d4}»
pin|iPad passcode «{d6}»
pin|PIN «{d4}» for the laundry card
token|client_secret: «{a12}12345678{a12}»
stripe-key|billing runs with «sk_live_{a8}12345678{a12}»
""".strip()

HARMLESS_TUNE = r"""
The password in the office is changed every month.
The wifi password for guests is on the whiteboard.
Root password on the new box: ask Mira.
Password of the VPN (old one): see the vault.
We set the password policy for admins to twelve characters.
The password you need there is the usual one.
Das Passwort für den Drucker lautet wie immer.
Passwort vom WLAN im Keller: steht am Router
Das Kennwort des Testservers ist abgelaufen
le mot de passe du wifi est sur la porte
la contraseña del router es la misma de siempre
machine learning login flow and password reset are two tickets
machine api.acme.dev login bob password $NETRC_PASSWORD
mysql -u root -p shop
mysql -u root -p -h db.internal.acme.dev:3306 shop
mysqldump --user=backup -P 3307 --all-databases > all.sql
sshpass -p "$SSH_PASS" ssh root@10.0.0.7
sshpass -f /etc/backup.pass ssh root@10.0.0.7
mkdir -p /srv/data/2024-archive/v2
docker run -p 8080:80 --name web1 nginx:1.25
docker login -u bob --password-stdin registry.acme.dev
redis-cli -h cache1 -a "$REDIS_PASS" ping
tar -P -xzf backup-2024.tgz
unzip -P "$ZIP_PASSWORD" reports.zip
pytest -p no:cacheprovider -x tests/unit2
ssh -p 2222 deploy@web1.acme.dev
nc -w 5 host1.acme.dev 443
grep -w "Error404" access.log
The PIN of the alarm is with the caretaker.
Pin 13 of the Arduino drives the LED.
pin pandas to 2.2.3 until the regression is fixed
GPIO pin 4 is the data line, pin 6 ground
The PIN has four digits and is changed in 2027.
error code 4042 means the queue is full
The exit code is 137 when the process runs out of memory.
zip code 80331 is in Munich
Our postal code: 8004 Zürich
country code 0041 before the number
The code review of PR 4821 is on Monday.
HTTP status code: 503
area code 089, then the extension
The discount code SUMMER2024 ends in August.
Door 4 code review room is booked
PUK means personal unblocking key and has eight digits.
The recovery phrase has twelve words; write them on paper.
seed 12345678 gives the same split every time
random_seed = 42 and seed words are sampled from the corpus
about above absent absorb are the first words of the list
We walk to the market on Saturday and buy bread, cheese, apples and some wine for the week.
The list has apple, banana, cherry, orange, grape, lemon, melon, peach, plum, pear, fig and kiwi.
token = "12345678901234567890"
api_key = "12345678"
API_TOKEN=abcdefgh12345678abcdefgh
client_secret: changeme12345678
Commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke the\nbuild on Friday.
sha256: e3b0c44298fc1c149afbf4c8996fb924\n27ae41e4649b934ca495991b7852b855
ghp_ is the prefix of GitHub's personal tokens,\nand they have 36 characters after it.
AKIA is the prefix of access keys / the secret has forty characters
The AWS account is 123456789012 / eu-west-1
Use the same password manager as the rest of the team.
Passwords must have 12 characters, a digit and a mark like ! or #.
She forgot her password again and asked the help desk on 2026-11-02.
password hashes use argon2id with m=65536
secret santa is on 2026-12-18 at 18:30
The passphrase of the song is sung by Band4You
""".strip()

HARMLESS_TEST = r"""
Her laptop's password at school was reset by the teacher.
The admin password on the printer downstairs is still the factory default.
password for Netflix = same as Spotify
Our shared Adobe password: in the team safe
I reset my password twice on 2026-03-04 and it still fails.
The passphrase of the backup disk reads like a poem.
Use a long sentence as the password for the demo account.
user: carla / pass: (none)
Passwort für die Fritzbox ist jetzt geheim
Das neue Passwort von Jonas heißt bestimmt wieder wie der Hund.
Kennwort Gastzugang: beim Empfang fragen
Voici le mot de passe de la base : demander à Luc
La contraseña de la oficina ahora es secreta
A senha do servidor é trocada a cada 90 dias
Het wachtwoord van de wifi is verlopen
The login machine in the hall asks for account and password twice.
mysqladmin -h db2 -u root -p status
mysql --user=app --password shop
rsync -avp ./ backup@nas1:/vol2
cp -pR conf.d/ /etc/nginx2/
scp -P2222 dump2024.sql.gz deploy@web1:
curl --user "$DEPLOY_USER:$DEPLOY_PASS" https://repo.acme.dev/upload
wget --user=anna --ask-password https://files.acme.dev/a2.zip
PGPASSWORD=$(cat /run/secrets/pg) pg_dump shop
mongosh --username root --password "$MONGO_PW" admin
7z a -p photos2024.7z photos/
htpasswd -c .htpasswd clara
echo "$PW" | sudo -S apt upgrade
psql: role app, pw in the vault
git log -p4 --since=2024-01-01
make -j8 -p build2
ps -p 48213 -o pid,cmd
kubectl port-forward -p web-7d9f8b6c4-x2x9z 8080:80
the runner registers with glpat-\n and a token of twenty characters
Slack's bot tokens begin with xoxb-\nand hold three parts
base64 of the logo: iVBORw0KGgo\nAAAANSUhEUg
The build id is 3f2c9a7e-58d1-4b6a\n-9e21-0c4d7f8a1b2c for both runs.
The mnemonic for the order of the planets is "my very educated mother just served us nine".
The seed round closed with twelve investors and a bridge loan of 2 million.
Write down: buy milk eggs bread butter sugar flour salt pepper rice beans corn tea
word list: able about above across act add age agree air all also always
Paper wallet designs are printed on Friday, two hundred copies each.
My debit card's PIN is blocked since Tuesday.
garage keypad: code is with Tom
PUK and PIN come in separate letters, the second after 5 days.
The combination of the two methods is 12 % better.
Türcode Seiteneingang: im Büro fragen
iPad passcode policy: six digits at least
PIN diode BAP64 is used in the 2400 MHz switch
pin 1 and pin 8 of the 4021 chip are swapped
Error code: 0x80070005 (access denied)
The dress code on 2026-12-24 is black tie.
source code 1998 to 2004 is on tape
The course code is MATH2040 and room 3125.
sort code 20-00-00 is the bank's own
code 4711 in the log means a retry
unlock level 4500 to get the sword
Bus 4821 leaves from gate 7391.
The safe distance is 15-20-25 metres.
client_secret: 12345678-1234-1234-1234-123456789012
api_key: "test12345678test12345678"
key = 1234567812345678
AWS_ACCESS_KEY_ID comes first / AWS_SECRET_ACCESS_KEY second
id=shop-4711;region=eu-central-1;version=2024-06-30-preview-build
token budget: 12345678 tokens a month
""".strip()


def some(alphabet: str, length: int) -> str:
    return "".join(draw.choices(alphabet, k=length))


def password() -> str:
    words = [
        "Marble",
        "tulip",
        "Kestrel",
        "anchor",
        "Velvet",
        "pixel",
        "Saturn",
        "copper",
        "Maple",
        "riddle",
    ]
    return draw.choice(
        [
            f"{draw.choice(words)}{draw.randrange(10, 9999)}{draw.choice('!#*?')}",
            f"{draw.choice(words).lower()}{draw.choice('_.-')}{draw.choice(words)}{draw.randrange(10, 99)}",
            some(ALNUM, 6) + some("!#*+", 1) + some(ALNUM, 5) + "7",
            some(string.ascii_lowercase + string.digits, 10) + "7k",
        ]
    )


def pin(length: int) -> str:
    """Avoid years and repeated digits."""
    return some("3579", 1) + some(string.digits, length - 2) + some("13579", 1)


def seed_phrase(count: int) -> list[str]:
    """Include the checksum, as wallets do."""
    words = (
        files("mnemonic").joinpath("wordlist", "english.txt").read_text(encoding="utf-8").split()
    )
    bits = count * 32 // 3
    entropy = draw.randbytes(bits // 8)
    check = bits // 32
    number = (int.from_bytes(entropy) << check) | (
        hashlib.sha256(entropy).digest()[0] >> (8 - check)
    )
    return [words[(number >> (11 * (count - 1 - place))) & 2047] for place in range(count)]


MARK = re.compile(r"\{([a-z]+)(\d*)\}")


def value(mark: re.Match[str]) -> str:
    """Return the value for `{pw}`, `{d4}`, `{seed12}` and so on."""
    kind, length = mark[1], int(mark[2] or 0)
    match kind:
        case "akia":
            return "AKIA" + some(string.ascii_uppercase + "234567", 16)
        case "aws":
            return some(ALNUM + "+/", 39) + some(ALNUM, 1)
        case "pw":
            return password()
        case "dash":
            return "-".join(pin(2) for _ in range(length))
        case "a" | "h":
            return some(ALNUM if kind == "a" else "0123456789abcdef", length)
        case "d":
            return pin(length)
    words = seed_phrase(length)
    if kind == "seednum":
        return " ".join(f"{at}. {word}" for at, word in enumerate(words, 1))
    return {"seed": " ", "seedcomma": ", ", "seedlines": "\n"}[kind].join(words)


def filled(text: str) -> str:
    return MARK.sub(value, text)


def secret_row(split: str, line: str) -> dict[str, object]:
    kind, _, text = line.partition("|")
    text = filled(text.replace("\\\\n", "\x00").replace("\\n", "\n").replace("\x00", "\\\n"))
    before, rest = text.split("«")
    secret, after = rest.split("»")
    if secret.startswith("1. "):  # The number of the first word gives no information.
        before, secret = before + "1. ", secret.removeprefix("1. ")
    cut = max(1, min(len(secret) // 2, 3))
    span = [len(before), len(before) + len(secret)]
    return {
        "split": split,
        "kind": kind,
        "text": [before + secret[:cut], secret[cut:] + after],
        "secret": span,
    }


def harmless_row(split: str, line: str) -> dict[str, object]:
    text = filled(line.replace("\\n", "\n"))
    return {"split": split, "text": [text[: len(text) // 2], text[len(text) // 2 :]]}


def write(name: str, rows: list[dict[str, object]]) -> None:
    out = Path(__file__).parents[1] / "tests" / "unit" / "secrets" / f"{name}.jsonl"
    out.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    print(f"{len(rows)} rows in {name}")


def main() -> None:
    halves = (("tune", TUNE, HARMLESS_TUNE), ("test", TEST, HARMLESS_TEST))
    write(
        "told_secrets",
        [secret_row(split, line) for split, secrets, _ in halves for line in secrets.splitlines()],
    )
    write(
        "told_harmless",
        [harmless_row(split, line) for split, _, texts in halves for line in texts.splitlines()],
    )


if __name__ == "__main__":
    main()
