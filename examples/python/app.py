import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from qstash import QStash, Receiver
from qstash.errors import SignatureError

PORT = int(os.environ.get("PORT", "3000"))
HERE = f"http://127.0.0.1:{PORT}/greet"

client = QStash(os.environ["QSTASH_TOKEN"], base_url=os.environ["QSTASH_URL"])
receiver = Receiver(
    current_signing_key=os.environ["QSTASH_CURRENT_SIGNING_KEY"],
    next_signing_key=os.environ["QSTASH_NEXT_SIGNING_KEY"],
)


class Greet(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            receiver.verify(signature=self.headers["Upstash-Signature"], body=body, url=HERE)
        except SignatureError:
            self.send_response(403)
            self.end_headers()
            return
        print(f"received {body}", flush=True)
        self.send_response(200)  # any 2xx completes the message
        self.end_headers()

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", PORT), Greet)  # starts to listen
published = client.message.publish_json(url=HERE, body={"hello": "world"}, retries=5)
print(f"published {published.message_id}", flush=True)
server.handle_request()
