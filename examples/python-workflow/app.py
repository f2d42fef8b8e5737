import os

from waypost_workflow import Workflow, server_of


def order(context):
    number = context.payload["order"]
    invoice = context.run("write the invoice", lambda: f"invoice {number}")
    goods, address = context.run_together(
        ("reserve the goods", lambda: f"the goods of order {number}"),
        ("look up the address", lambda: "12 Main Street"),
    )
    context.sleep("let them change their mind", 1)

    def send():
        print(f"{goods} and {invoice} go to {address}", flush=True)

    context.run("send the parcel", send, is_last=True)
    return "sent"


def failed(run_id, response):
    print(f"{run_id} has failed: {response}", flush=True)


signing_keys = [os.environ["QSTASH_CURRENT_SIGNING_KEY"], os.environ["QSTASH_NEXT_SIGNING_KEY"]]
workflows = {"/order": Workflow(order, os.environ["QSTASH_URL"], signing_keys, failed)}
server = server_of(workflows, int(os.environ.get("PORT", "3000")))
print("ready", flush=True)
server.serve_forever()
