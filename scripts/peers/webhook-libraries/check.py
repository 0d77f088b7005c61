# Reads {"secret", "headers", "body"} from standard input and says whether Standard Webhooks' own library for Python accepts it.
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

given = json.load(sys.stdin)
try:
    Webhook(given["secret"]).verify(given["body"], given["headers"])
except WebhookVerificationError as error:
    print("refused:", error)
    sys.exit(1)
print("accepted")
