"""Write tests/unit/secrets/harmless.jsonl: texts that look like secrets and are not.

Texts are stored in parts, as in secrets.jsonl, since some are published example keys.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import uuid
from pathlib import Path

SEED = 20_261_116
draw = random.Random(SEED)


def sha(length: int) -> str:
    return hashlib.sha512(draw.randbytes(8)).hexdigest()[:length]


def a_uuid() -> str:
    return str(uuid.UUID(bytes=draw.randbytes(16), version=4))


def picture(size: int) -> str:
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + draw.randbytes(size)).decode()


def digits(length: int) -> str:
    return "".join(draw.choices("0123456789", k=length))


WORDS = """
auth: use-middleware-refactor-plan
auth: use-middleware-refactor-plan-2
token: see-onboarding-document
secret: santa-planning-for-december
password: required
password: must be at least 12 characters with one digit
Password reset flow: user clicks the link, token is checked, password is set.
The password is stored in 1Password under "Shop staging".
The password is in the vault, ask Ines.
The password was changed on 2026-03-04.
password policy: 14+ characters, no rotation
The password is hashed with argon2id and a 16-byte salt.
The API key is in AWS Secrets Manager under prod/billing/key.
api_key: provided-by-the-platform-team
The token is valid for 3600s and refreshed at 80%.
token_type: Bearer
max_tokens: 128000
token_budget=4096
The secret to fast builds is caching node_modules.
secret_name: shop-database-credentials
secretKeyRef:\n  name: postgres-credentials\n  key: postgres-password
passwordFile: /run/secrets/postgres_password
POSTGRES_PASSWORD_FILE=/run/secrets/pg_pass
password_hash_algorithm: bcrypt-2b-12-rounds
token_endpoint: https://login.acme.dev/oauth2/v2.0/token
auth_provider_x509_cert_url: https://www.googleapis.com/oauth2/v1/certs
key: primary-navigation-menu-item
primary_key: order_line_item_id
foreign key (customer_id) references customers(id)
sort_key = created_at_desc_nulls_last
key=lambda item: (item.score, item.identifier)
keyboard shortcut: Ctrl+Shift+Alt+F12
The key insight is that BM25-plus-vectors beats either alone.
key: value-with-several-hyphenated-words-2026
cache_key = f"user:{user_id}:profile:v3"
i18n key: settings.account.security.two_factor_enabled
public_key_algorithm: ed25519
pinned: true
pin: dependabot-weekly-npm-updates
passport office opens at 08:30 on Tuesdays
compass: N48W122
passing: 412 failing: 3
bypass: feature-flag-legacy-checkout-v2
Use auth: session-cookie-with-csrf-double-submit for the admin pages.
authorization: role-based-access-control-per-tenant
Authorization: Bearer <token>
Authorization: Bearer YOUR_ACCESS_TOKEN
Authorization: Basic <base64(user:pass)>
Basic authentication is turned off on the gateway.
The bearer of this card may enter building 7.
Bearer tokens are checked in middleware/authenticate.ts
basic configuration-management-tutorial for newcomers
curl -H "Authorization: Bearer $TOKEN" https://api.acme.dev/items
curl -u "$USER:$PASS" https://api.acme.dev
curl -u user:password https://example.com/login
export OPENAI_API_KEY=$(op read op://dev/openai/key)
export GITHUB_TOKEN="${{ secrets.GITHUB_TOKEN }}"
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
ANTHROPIC_API_KEY=sk-ant-...
ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
OPENAI_API_KEY=YOUR_API_KEY
OPENAI_API_KEY=<your key here>
api_key = "YOUR_API_KEY"
api_key = "your-api-key-goes-here-1234"
api_key="REPLACE_WITH_YOUR_OWN_KEY_2024"
api_key = os.environ["STRIPE_API_KEY"]
apiKey: process.env.OPENAI_API_KEY,
const apiKey = config.get('services.mail.apiKey2')
token = request.headers["X-Session-Token-V2"]
password = getpass.getpass("Database password: ")
password=****************
password: "********"
password = "changeme"
password: <password>
password: {{ vault_postgres_password }}
password: !vault |
DB_PASSWORD=${DB_PASSWORD:?missing}
db_password: "{{ lookup('env', 'DB_PASSWORD') }}"
client_secret: ${CLIENT_SECRET}
secret = var.database_password
secret: arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop/db-Ab12Cd
token: vault:secret/data/shop#token
token = settings.GITHUB_WEBHOOK_TOKEN_2
TOKEN=%GITLAB_TOKEN%
AKIAIOSFODNN7EXAMPLE is the key id used in all of Amazon's documentation.
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
aws_access_key_id = AKIAXXXXXXXXXXXXXXXX
sk_test_4eC39HqLyjWDarjtT1zdp7dc is the key of Stripe's own documentation.
postgres://user:password@localhost/db
postgres://USER:PASSWORD@HOST:5432/NAME
postgres://${DB_USER}:${DB_PASS}@db/shop
mysql://<user>:<password>@127.0.0.1/shop
https://user:***@git.acme.dev/shop.git
redis://localhost:6379/0
amqp://guest@mq1:5672/
git@github.com:acme/shop.git
ssh://git@git.acme.dev:2222/acme/shop.git
http://127.0.0.1:8080/v1/embeddings
see https://docs.acme.dev/guide:setup@v2 for the steps
mailto:clara@acme.dev?subject=token
scp build.tar.gz deploy@10.0.0.5:/srv/releases/
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
ghp_ tokens are the classic ones, github_pat_ the fine-grained ones.
Our detector must know sk-ant-, AIza, xoxb- and glpat- prefixes.
glpat-XXXXXXXXXXXXXXXXXXXX
xoxb-your-token-here-not-a-real-one
AIza keys are restricted by referrer.
npm_config_registry=https://registry.npmjs.org/
npm_lifecycle_event=postinstall
npm_package_version and npm_execpath are set by npm
hf_transfer and hf_xet make downloads faster
hf_hub_download(repo_id="sentence-transformers/all-MiniLM-L6-v2")
sk-learn is spelt scikit-learn
sk-toggleable__label-arrow
SK is the country code of Slovakia; AC is air conditioning.
SG.01 is the room of the standup
pypi-server runs on port 8081
dop_v1_ is DigitalOcean's prefix
The JWT has three parts: header.payload.signature
eyJhbGciOiJIUzI1NiJ9 is only a JWT header
eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c
-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7Xx\n-----END PUBLIC KEY-----
-----BEGIN CERTIFICATE----- starts every PEM certificate
-----BEGIN RSA PRIVATE KEY----- starts the file you must never commit
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7yq3m9wK1dP4Xr2bT8vN5cQ6sL0hG3fE1aZ9uY4oWi clara@laptop
SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8 is GitHub's host key fingerprint
PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p is Clara's public age key
4111 1111 1111 1111 is the Visa test number
pay with 4242 4242 4242 4242 in test mode
5555555555554444 always succeeds in the sandbox
DE89 3704 0044 0532 0130 00 is the IBAN of the Wikipedia article
GB82 WEST 1234 5698 7654 32
https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
https://discord.com/api/webhooks/<id>/<token>
webhook: post-to-channel-on-failed-deploys
""".strip().splitlines()

NUMBERS = """
Call me at +49 30 901820 or 0170-5550123.
ISBN 978-3-16-148410-0 is the book about search.
ISBN 9780262035613 (Deep Learning)
ticket SHOP-48213 blocks SHOP-48190
MAC 3c:22:fb:9a:10:7e got 192.168.7.41
The colours are #ff8800, #1a2b3c and #c0ffee99.
Order 4000123412341234 shipped on Monday.
tracking number 1Z999AA10123456784
EAN 4006381333931
The run took 1699999999999 ms since the epoch.
timestamp 1731657600000 is in milliseconds
version 2.14.3-rc.1+build.20261115
cryptography==50.0.2, cffi==2.1.1, msgspec==0.22.0
python:3.12.4-slim-bookworm
node@22.11.0, pnpm@9.12.3
IPv6 2001:0db8:85a3:0000:0000:8a2e:0370:7334
invoice 2026-000-118-4471
VIN 1HGCM82633A004352
coordinates 52.520008, 13.404954
Account 123456789012 in eu-central-1
room 4.12, desk 17, locker 0042
SN: C02XK1ZZJGH7
error 0x8007000E at 0x00007ff6a1b2c3d4
CVE-2024-3094 affects xz 5.6.0 and 5.6.1
RFC 7617, section 2.1
PO 5312-4471-22
chassis 2221 0034 7719
GPU 0000:3b:00.0 at 71C
phone 4930901820123456
the 16-digit batch number is 1234567812345678
""".strip().splitlines()

CODE = """
def refresh_token(session: Session, refresh_token: str) -> Token:
password: str = Field(min_length=12, max_length=128)
if token.is_expired(): raise AuthenticationError("token expired")
const { accessToken, refreshToken } = useSession();
interface Props { apiKey: string; onChange: (value: string) => void }
assert masked("secret") == MASK
secrets.token_urlsafe(32)
password_field = driver.find_element(By.ID, "password")
TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{20,}")
private key_cache: Map<string, CacheEntry> = new Map();
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
token_ids = [101, 7592, 2088, 102]
keys = sorted(index, key=operator.itemgetter("created_at"))
SECRET_KEY_BASE is generated by `rails secret`
parser.add_argument("--api-key", help="read from the environment if none")
<input type="password" name="password" autocomplete="current-password">
public static final String AUTH_HEADER = "X-Auth-Token";
let key = KeyCode::ArrowUp;
password.length >= 8 && /[0-9]/.test(password)
import { getServerSession } from "next-auth/next"
ALTER ROLE app PASSWORD NULL;
kubectl create secret generic shop-db --from-env-file=.env.local
gh auth token | docker login ghcr.io -u clara --password-stdin
ssh-keygen -t ed25519 -C "clara@laptop"
vault kv get -field=password secret/shop/db
op item get "Shop DB" --fields password
from detect_secrets.plugins.keyword import KeywordDetector
class TokenBucketRateLimiter(BaseRateLimiter):
XSRF-TOKEN cookie, HttpOnly=false, SameSite=Lax
token.type == TokenType.IDENTIFIER_2
csrf_token: {{ csrf_token() }}
secret: process.env.NEXTAUTH_SECRET ?? undefined
passwordEncoder = new BCryptPasswordEncoder(12)
keyPath: "customers.orders.lines"
hashKey="tenant#42" rangeKey="memory#2026-11"
tokens_per_minute: 90000
auth.service.ts, auth.guard.ts and auth.module.spec.ts
login: clara, role: admin, team: platform-infrastructure
credential: helper-store-osxkeychain
credentials: 'include'
credential_source.file: /var/run/token
""".strip().splitlines()

SENTENCES = """
Clara prefers passphrases to passwords and told us so twice.
The token for the parking garage is at the reception.
Keys to the server room hang behind Ines's desk.
We decided to rotate all tokens every 90 days.
The secret Santa list is in the shared drive.
API keys are made and revoked by the CLI, stored hashed.
A password manager is mandatory since 2024-06-01.
Authentication moved from Auth0 to Keycloak 26.0.5.
The private key never leaves the HSM.
Token usage doubled after the upgrade to gpt-4o-2024-08-06.
The access key rotation job runs at 03:15 UTC.
password: ask Clara
token: none
secret: no
The pin is mightier than the sword, he joked.
Never commit credentials.json or .env.production.local.
Passkeys replace passwords on the new login page.
The api key is rate limited to 60 requests/minute.
The token is sent as X-Auth-Token by every client.
Her password is the name of her first dog, she said, and laughed.
Das Passwort ist im Tresor.
Das Passwort ist mindestens 12 Zeichen lang.
La contraseña es obligatoria.
The passcode is printed on the back of the router.
The auth is handled by oauth2-proxy-7.6.0 in front.
Our key account is Acme-Nordics-2026.
The secret is out: the release is called Nightingale.
token is refreshed by scripts/refresh_session.py
""".strip().splitlines()

GENERATED = [
    *(f"commit {sha(40)} fixed the crash" for _ in range(10)),
    *(f"{sha(7)} Merge branch 'main' into feature/auth-token-cleanup" for _ in range(8)),
    *(f"sha256:{sha(64)}" for _ in range(8)),
    *(f"image: registry.acme.dev/shop@sha256:{sha(64)}" for _ in range(6)),
    *(f"md5 {sha(32)}  model.onnx" for _ in range(8)),
    *(f"request id {a_uuid()} timed out" for _ in range(10)),
    *(f"memory {a_uuid()} supersedes {a_uuid()}" for _ in range(8)),
    *(f"token_id: {a_uuid()}" for _ in range(4)),
    *(f"secret_id = {a_uuid()}" for _ in range(3)),
    *(f"![logo](data:image/png;base64,{picture(n)})" for n in (60, 90, 120, 200, 300, 400)),
    *(f"integrity=\"sha384-{base64.b64encode(draw.randbytes(48)).decode()}\"" for _ in range(6)),
    *(f"\"integrity\": \"sha512-{base64.b64encode(draw.randbytes(64)).decode()}\"," for _ in range(6)),
    *(f"ETag: \"{sha(32)}\"" for _ in range(5)),
    *(f"trace-id={sha(32)} span-id={sha(16)}" for _ in range(6)),
    *(f"tracking {digits(20)} arrived" for _ in range(5)),
    *(f"ticket {digits(8)} and invoice {digits(12)}" for _ in range(6)),
    *(f"key fingerprint {':'.join(sha(2) for _ in range(16))}" for _ in range(4)),
    *(f"the docker layer {sha(12)} is cached" for _ in range(4)),
    *(f"s3://shop-artifacts/builds/{sha(40)}/dist.tar.gz" for _ in range(4)),
    *(f"the cache key is derived from the lockfile: deps-{sha(64)}" for _ in range(3)),
    *(f"<img src=\"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7\"> {n}" for n in range(3)),
    *(f"Build #{digits(5)} of job shop-api took {digits(3)} s" for _ in range(5)),
    *(f"pod shop-api-{sha(10)}-{sha(5)} was evicted" for _ in range(5)),
    *(f"arn:aws:iam::{digits(12)}:role/deploy-{sha(8)}" for _ in range(4)),
    *(f"vpc-0{sha(16)}, subnet-0{sha(16)}" for _ in range(4)),
    *(f"document id 1{sha(20)}-{sha(12)} in the drive" for _ in range(3)),
    *(f"snapshot_{digits(14)}_{sha(8)}.sql.gz" for _ in range(4)),
]  # fmt: skip


def main() -> None:
    rows = []
    for group in (WORDS, NUMBERS, CODE, SENTENCES, GENERATED):
        for at, line in enumerate(group):
            text = line.replace("\\n", "\n")
            cut = len(text) // 2
            rows.append({"split": "tune" if at % 2 else "test", "text": [text[:cut], text[cut:]]})
    out = Path(__file__).parents[1] / "tests" / "unit" / "secrets" / "harmless.jsonl"
    out.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    print(f"{len(rows)} harmless texts")


if __name__ == "__main__":
    main()
