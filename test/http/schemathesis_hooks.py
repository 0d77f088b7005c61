"""What schemathesis cannot know of the API: which tokens work, which transactions there are, and which fields of a body hang together.

The run's own token stands in the Authorization header, so a made-up one in the body is taken out, or every call would end at 401; it stays
where it is itself what is wrong with the call. Signing out and exchanging tokens get tokens of their own.
"""

import hashlib
import json
import os
import urllib.request

import schemathesis

BASE = os.environ["API_BASE"]
USER = {"username": "shop", "password": os.environ["API_PASSWORD"]}
TRANSACTIONS = os.environ["API_TRANSACTIONS"].split(",")
PAYOUT_IDS = os.environ["API_PAYOUTS"].split(",")
WEBHOOKS = os.environ["API_WEBHOOKS"].split(",")
EVENTS = os.environ["API_EVENTS"].split(",")
KEY = "Idempotency-Key"
OPEN = ["/auth", "/auth_refresh"]
# the form of amount and destination depends on the method
PAYOUTS = {
    "lightning": {"amount": "0.001", "destination": "customer@example.com"},
    "bitcoin": {"amount": "0.001", "destination": "bcrt1qq5nunksgr27r57vrpp2xzc2nlwrv3xmdhydntp"},
    "ach": {"amount": "150.00", "destination": "ach:021000021:123456789"},
    "usdt": {"amount": "50", "destination": "0x52908400098527886e0f7030069857d2e4169ee7"},
}


def sign_in():
    request = urllib.request.Request(f"{BASE}/auth", json.dumps(USER).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def chance(body):
    """From 0 to 255, always the same for the same body, so that a run can be repeated."""
    text = json.dumps(body, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).digest()[0]


def is_token(value):
    return isinstance(value, str) and 1 <= len(value) <= 4096


def is_allowed(name, value, depth=2):
    """Whether a field that no operation knows is ignored: some names are refused, and so is what is nested too deep."""
    if name in ("__proto__", "constructor", "prototype") or depth > 5:
        return False
    if isinstance(value, dict):
        return all(is_allowed(key, item, depth + 1) for key, item in value.items())
    return not isinstance(value, list) or all(is_allowed("", item, depth + 1) for item in value)


def made_consistent(path, body, headers):
    """A body that fits the schema, with what else the operation asks for."""
    roll = chance(body)
    if path == "/auth" and roll < 224:
        return dict(USER)
    if path == "/auth_refresh" and roll < 224:
        pair = sign_in()
        return {"access_token": pair["access_token"], "refresh_token": pair["refresh_token"]}
    if isinstance(body.get("transaction_id"), str) and roll < 224:
        body["transaction_id"] = TRANSACTIONS[roll % len(TRANSACTIONS)]
    if isinstance(body.get("payout_id"), str) and roll < 224:
        body["payout_id"] = PAYOUT_IDS[roll % len(PAYOUT_IDS)]
    if isinstance(body.get("webhook_id"), str) and roll < 224:
        # one of them is left for the operations that need one
        body["webhook_id"] = WEBHOOKS[1 + roll % (len(WEBHOOKS) - 1)] if path == "/delete_webhook" else WEBHOOKS[0]
    # which hosts may be called cannot be said in a schema
    if path == "/create_webhook":
        body["url"] = f"http://127.0.0.1:9/{roll}"
    if isinstance(body.get("event_id"), str) and roll < 224:
        body["event_id"] = EVENTS[roll % len(EVENTS)]
    if isinstance(body.get("starting_after"), str) and body["starting_after"].startswith("txn_"):
        body["starting_after"] = TRANSACTIONS[0]
    if isinstance(body.get("starting_after"), str) and body["starting_after"].startswith("payout_"):
        body["starting_after"] = PAYOUT_IDS[0]
    if body.get("wait_seconds"):
        body["wait_seconds"] = 0
    if body.get("action") == "reimburse":
        # the first and the third are in bitcoin, as the address is
        body["transaction_id"] = TRANSACTIONS[roll % 2 * 2]
        body["destination"] = PAYOUTS["bitcoin"]["destination"]
        body.pop("currency", None)
    elif "action" in body:
        body.pop("part", None)
    if path == "/request_payout" and body.get("method") in PAYOUTS:
        if roll < 160:
            body["method"] = "bitcoin"
        body.update(PAYOUTS[body["method"]])
    # a list of other destinations would refuse every payout after it
    if path == "/set_settings" and isinstance(body.get("payout_allow_list"), list):
        body["payout_allow_list"] = [PAYOUTS["bitcoin"]["destination"]]
    if path == "/set_payout_settings":
        body.update({"method": "bitcoin", "destination": PAYOUTS["bitcoin"]["destination"], "threshold": "0.5", "leave": "0.1"})
    body = {name: value for name, value in body.items() if is_allowed(name, value)}
    if KEY in headers:
        body.pop("idempotency_key", None)
    return body


class Bearer:
    """The token in the header, as the document has it."""

    def get(self, case, context):
        return sign_in()["access_token"]

    def set(self, case, token, context):
        case.headers["Authorization"] = f"Bearer {token}"


# one for the whole run, and a new one each time for the operation that ends it
schemathesis.auth(refresh_interval=None).apply_to(path="/sign_out")(type("OneTime", (Bearer,), {}))
schemathesis.auth(refresh_interval=800).skip_for(path=["/sign_out", *OPEN])(Bearer)


@schemathesis.hook
def before_call(context, case, kwargs):
    if not isinstance(case.body, dict):
        return
    body = dict(case.body)
    generation = getattr(case.meta, "generation", None)
    is_bad = generation is not None and generation.mode.is_negative
    if case.path not in OPEN and "access_token" in body and (not is_bad or is_token(body["access_token"])):
        del body["access_token"]
    case.body = body if is_bad else made_consistent(case.path, body, case.headers)
