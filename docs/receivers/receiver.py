# Receives Bursar's webhooks. Python 3.8 or newer, nothing to install: python3 receiver.py <port> <secret>
import base64
import hashlib
import hmac
import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, secret = sys.argv[1:]
key = base64.b64decode(secret.replace("whsec_", ""))
applied = {}  # of each object the highest sequence; keep it in your database


def is_genuine(headers, body):
    """Standard Webhooks 1.0.0: any of the signatures may be ours, and the time must be now."""
    sent, identifier = headers["webhook-timestamp"] or "", headers["webhook-id"] or ""
    if not re.fullmatch("[0-9]{1,12}", sent) or abs(time.time() - int(sent)) > 300:
        return False
    digest = hmac.new(key, f"{identifier}.{sent}.".encode() + body, hashlib.sha256).digest()
    wanted = b"v1," + base64.b64encode(digest)
    return any(hmac.compare_digest(wanted, given.encode()) for given in (headers["webhook-signature"] or "").split(" "))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        genuine = is_genuine(self.headers, body)
        if genuine:
            event = json.loads(body)
            shown = event["data"]["object"]
            identifier = shown.get("transaction_id") or shown["id"]
            # events come in any order, and some twice
            if event["sequence"] > applied.get(identifier, 0):
                applied[identifier] = event["sequence"]
                print(event["type"], identifier, "is", shown["status"], flush=True)
        self.send_response(204 if genuine else 400)
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver).serve_forever()
