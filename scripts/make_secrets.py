"""Write tests/unit/secrets/secrets.jsonl: invented secrets in sentences, code and chat.

Values come from a seeded generator and open nothing. Each text is stored in parts, cut within the
secret, so that scanners of repositories find no leak.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Sequence
from pathlib import Path

SEED = 20_261_115
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "_-"
B64 = ALNUM + "+/"
BASE32 = string.ascii_uppercase + "234567"
CAPITALS = string.ascii_uppercase + string.digits

draw = random.Random(SEED)


def some(alphabet: str, length: int) -> str:
    return "".join(draw.choices(alphabet, k=length))


def luhn(prefix: str, length: int, gap: str = "") -> str:
    digits = prefix + some(string.digits, length - len(prefix) - 1)
    total = sum(
        n - 9 if n > 9 else n
        for n in (int(d) * (2 - at % 2) for at, d in enumerate(reversed(digits)))
    )
    digits += str(-total % 10)
    return gap.join(digits[at : at + 4] for at in range(0, length, 4)) if gap else digits


def iban(country: str, length: int) -> str:
    account = some(string.digits, length - 4)
    check = 98 - int("".join(str(int(c, 36)) for c in f"{account}{country}00")) % 97
    return f"{country}{check:02}{account}"


def jwt() -> str:
    def part(value: object) -> str:
        return (
            base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode())
            .decode()
            .rstrip("=")
        )

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': some(HEX, 12), 'iat': draw.randrange(10**9)})}.{some(URL, 43)}"


def pem(name: str, lines: int) -> str:
    body = "\n".join(some(B64, 64) for _ in range(lines))
    return f"-----BEGIN {name}PRIVATE KEY-----\n{body}\n{some(B64, 42)}==\n-----END {name}PRIVATE KEY-----"


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
    shapes: list[Callable[[], str]] = [
        lambda: f"{draw.choice(words)}{draw.randrange(10, 9999)}{draw.choice('!#$%&*?')}",
        lambda: (
            f"{draw.choice(words).lower()}{draw.choice('_.-')}{draw.choice(words)}{draw.randrange(10, 99)}"
        ),
        lambda: some(ALNUM, 6) + some("!#$%&*?+", 2) + some(ALNUM, 5),
        lambda: some(string.ascii_lowercase + string.digits, 11) + "7k",
        lambda: (
            draw.choice(words).replace("a", "4").replace("e", "3").replace("l", "1")
            + str(draw.randrange(100, 999))
        ),
    ]
    return draw.choice(shapes)()


PLAIN = [
    "Use {} for the staging account until Friday.",
    "ok here it is: {}",
    "The CI job failed because {} had expired; Ines made a new one.",
    '    client = Client("{}")',
    "export SERVICE_KEY={}",
    "key: {}  # rotate in March",
    "She pasted {} into the channel by mistake.",
    "config['credentials'] = '{}'",
    '- name: PROD\n  value: "{}"',
    "curl -s -H 'X-Api-Key: {}' https://api.internal/v2/items",
    "{}",
    "Decision: the nightly import authenticates with {} and nothing else.",
    "| prod | {} | expires 2027-01 |",
    '{{"service": "billing", "key": "{}"}}',
    "(old one was revoked, now {})",
    "user> what's the key again?\nassistant> It is {}, from the vault.",
    "const KEY = `{}`;",
    "Remember: {} belongs to the analytics bot.",
]
PASSWORDS = [
    "The password of the staging database is {}",
    "DB_PASSWORD={}",
    "password: {}",
    "spring.datasource.password={}",
    "    'PASSWORD': '{}',",
    "wifi at the office: network Trivet-Guest, password {!q}",
    'psql "host=db1 user=app password={} dbname=shop"',
    "Server=tcp:sql1;Database=shop;User Id=sa;Password={};Encrypt=true",
    'mysql_root_password: "{}"',
    "my login is clara and the password is {}, please do not share",
    'const dbPassword = "{}";',
    "REDIS_PASS='{}' docker compose up",
    "The passphrase is: {}",
    'pwd = "{}"',
]
TOKENS = [
    'api_key = "{}"',
    "API_TOKEN={}",
    "client_secret: {}",
    "The access key is {} for the metrics service",
    '"secret": "{}",',
    "signing-key: '{}'",
    "token => '{}',",
    "JWT_SECRET={}",
    'authToken: "{}"',
    "let apiKey = '{}'",
    "X_API_KEY: {}",
    "our webhook secret is {}",
]
URLS = [
    "DATABASE_URL={}",
    "The replica is at {} since May.",
    "broker = '{}'",
    "git remote add origin {}",
    'engine = create_engine("{}")',
    "mongo: {} (read only)",
]
ONE = ["{}"]

# Kind, contexts, maker, and the surrounding value ("{}" if none).
Maker = Callable[[], str]
KINDS: list[tuple[str, Sequence[str], Maker, Sequence[str]]] = [
    ("anthropic-key", PLAIN, lambda: f"sk-ant-api03-{some(URL, 93)}AA", ONE),
    ("openai-key", PLAIN, lambda: f"sk-proj-{some(ALNUM, 48)}", ONE),
    ("openai-key", PLAIN, lambda: f"sk-{some(ALNUM, 48)}", ONE),
    ("google-api-key", PLAIN, lambda: f"AIza{some(URL, 34)}{some(ALNUM, 1)}", ONE),
    ("slack-token", PLAIN, lambda: f"xoxb-{some(string.digits, 12)}-{some(string.digits, 13)}-{some(ALNUM, 24)}", ONE),
    ("slack-token", PLAIN, lambda: f"xapp-1-A{some(CAPITALS, 10)}-{some(string.digits, 13)}-{some(HEX, 64)}", ONE),
    ("github-token", PLAIN, lambda: f"ghp_{some(ALNUM, 36)}", ONE),
    ("github-token", PLAIN, lambda: f"github_pat_11{some(CAPITALS, 20)}_{some(ALNUM, 59)}", ONE),
    ("gitlab-token", PLAIN, lambda: f"glpat-{some(URL, 19)}{some(ALNUM, 1)}", ONE),
    ("npm-token", [*PLAIN, "//registry.npmjs.org/:_authToken={}"], lambda: f"npm_{some(ALNUM, 36)}", ONE),
    ("pypi-token", PLAIN, lambda: f"pypi-AgEIcHlwaS5vcmc{some(URL, 139)}{some(ALNUM, 1)}", ONE),
    ("digitalocean-token", PLAIN, lambda: f"dop_v1_{some(HEX, 64)}", ONE),
    ("huggingface-token", PLAIN, lambda: f"hf_{some(ALNUM, 34)}", ONE),
    ("sendgrid-key", PLAIN, lambda: f"SG.{some(URL, 22)}.{some(URL, 42)}{some(ALNUM, 1)}", ONE),
    ("twilio-key", PLAIN, lambda: f"{draw.choice(['AC', 'SK'])}{some(HEX, 32)}", ONE),
    ("stripe-key", PLAIN, lambda: f"{draw.choice(['sk_live_', 'sk_test_', 'rk_live_'])}{some(ALNUM, draw.choice([24, 99]))}", ONE),
    ("aws-access-key", PLAIN, lambda: f"AKIA{some(BASE32, 16)}", ONE),
    ("aws-secret-key", ["aws_secret_access_key = {}", "AWS_SECRET_ACCESS_KEY={}", "secretAccessKey: '{}'", "The AWS secret key is {} (us-east-1)", "\"SecretAccessKey\": \"{}\""], lambda: some(B64, 40), ONE),
    ("gcp-service-account", ["{{\"type\": \"service_account\", \"project_id\": \"shop-1\", \"private_key\": \"{}\"}}", "service_account key for the exporter: {}"], lambda: pem("", 4).replace("\n", "\\n"), ONE),
    ("azure-key", ONE, lambda: f"{some(B64, 86)}==", ["DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={};EndpointSuffix=core.windows.net", "Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}"]),
    ("jwt", [*PLAIN, "Cookie: session={}; theme=dark"], jwt, ONE),
    ("private-key", ["Deploy key of the build server:\n{}", "{}", "cat > id_rsa <<EOF\n{}\nEOF"], lambda: pem(draw.choice(["RSA ", "OPENSSH ", "EC ", ""]), 5), ONE),
    ("url-password", URLS, lambda: password().replace("/", "").replace("?", "").replace("#", ""), ["postgres://app:{}@db.internal:5432/shop", "https://ci:{}@git.acme.dev/shop.git", "amqp://worker:{}@mq1/", "mongodb+srv://reader:{}@cluster0.ab1cd.mongodb.net/shop", "redis://:{}@cache:6379/0"]),
    ("basic-auth", ["Authorization: Basic {}", "headers = {{'Authorization': 'Basic {}'}}", "curl -H \"Authorization: Basic {}\" https://api.acme.dev"], lambda: base64.b64encode(f"clara:{password()}".encode()).decode(), ONE),
    ("bearer-token", ["Authorization: Bearer {}", "requests.get(url, headers={{\"Authorization\": \"Bearer {}\"}})", "try it with Bearer {} in the header"], lambda: some(ALNUM, draw.choice([32, 40, 64])), ONE),
    ("password", PASSWORDS, password, ONE),
    ("password", PASSWORDS, password, ONE),
    ("token", TOKENS, lambda: some(draw.choice([ALNUM, HEX, URL]), draw.choice([24, 32, 40, 64])), ONE),
    ("token", TOKENS, lambda: some(draw.choice([ALNUM, HEX]), draw.choice([20, 32, 48])), ONE),
    ("wireguard-key", ["[Interface]\nPrivateKey = {}\nAddress = 10.0.0.2/32", "PresharedKey={}", "private_key of wg0 -> PrivateKey: {}"], lambda: f"{some(B64, 42)}{draw.choice('AEIMQUYcgkosw048')}=", ONE),
    ("age-key", PLAIN, lambda: f"AGE-SECRET-KEY-1{some('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}", ONE),
    ("slack-webhook", PLAIN, lambda: f"T{some(CAPITALS, 10)}/B{some(CAPITALS, 10)}/{some(ALNUM, 24)}", ["https://hooks.slack.com/services/{}"]),
    ("discord-webhook", PLAIN, lambda: some(URL, 67) + "k", ["https://discord.com/api/webhooks/118" + "2736455463728190/{}"]),
    ("discord-token", PLAIN, lambda: f"M{some(ALNUM, 23)}.{some(ALNUM, 6)}.{some(URL, 26)}b", ONE),
    ("credit-card", ["The company card is {}, exp 04/28.", "card: {}", "pay with {} please", "{}"], lambda: draw.choice([luhn("4539", 16, " "), luhn("5312", 16), luhn("4716", 16, "-")]), ONE),
    ("iban", ["Please transfer to {} by Friday.", "IBAN: {}", "landlord's account {} (Sparkasse)"], lambda: draw.choice([iban("DE", 22), iban("AT", 20), iban("PL", 28)]), ONE),
    ("telegram-token", PLAIN, lambda: f"{draw.randrange(10**8, 10**10)}:AA{some(URL, 32)}h", ONE),
    ("mailchimp-key", PLAIN, lambda: f"{some(HEX, 32)}-us{draw.randrange(1, 21)}", ONE),
    ("vault-token", PLAIN, lambda: f"hvs.{some(ALNUM, 90)}", ONE),
    ("databricks-token", PLAIN, lambda: f"dapi{some(HEX, 32)}", ONE),
    ("shopify-token", PLAIN, lambda: f"shpat_{some(HEX, 32)}", ONE),
    ("linear-key", PLAIN, lambda: f"lin_api_{some(ALNUM, 40)}", ONE),
    ("docker-token", PLAIN, lambda: f"dckr_pat_{some(ALNUM, 27)}", ONE),
]  # fmt: skip
ROWS_OF_EACH = 5


def main() -> None:
    rows = []
    for number, (kind, contexts, make, shells) in enumerate(KINDS):
        chosen = draw.sample(list(contexts), min(ROWS_OF_EACH, len(contexts)))
        while len(chosen) < ROWS_OF_EACH:
            chosen.append(draw.choice(list(contexts)))
        for at, context in enumerate(chosen):
            secret = make()
            inner = draw.choice(list(shells)).replace("{}", "\x00", 1)
            text = (
                context.replace("{!q}", '"{}"')
                .replace("{}", inner)
                .replace("{{", "{")
                .replace("}}", "}")
            )
            before, after = text.split("\x00")
            cut = 17 if secret.startswith("-----") else max(1, min(len(secret) // 2, 3))
            split = "tune" if (at + number) % 2 else "test"
            parts = [before + secret[:cut], secret[cut:] + after]
            span = [len(before), len(before) + len(secret)]
            rows.append({"split": split, "kind": kind, "text": parts, "secret": span})
    out = Path(__file__).parents[1] / "tests" / "unit" / "secrets" / "secrets.jsonl"
    out.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    print(f"{len(rows)} secrets of {len({row['kind'] for row in rows})} kinds")


if __name__ == "__main__":
    main()
