"""A small OpenAI-compatible server for the tests of tandem bench. One word of a prompt is one token;
every chunk of an answer carries TOKENS_PER_CHUNK tokens, so that a client that counts chunks is wrong.
"""
import http.server
import json
import threading
import time

TOKENS_PER_CHUNK = 4


class StreamServer:
    """mode: "" | "no_tokenize" | "no_usage" | "no_metrics" | "silent" (never answers a chat)
    | "not_found" (404 for everything) | "overloaded" (503 for every chat)"""

    def __init__(self, mode="", chunk_s=0.002, prefill_s_per_token=0.0, die_after=None):
        self.mode, self.chunk_s, self.prefill_s_per_token = mode, chunk_s, prefill_s_per_token
        self.die_after = die_after
        self.prompts, self.known = [], set()
        self.reading = 0  # long prompts being read: streams run at half the speed meanwhile
        self.drafted = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.get(self)

            def do_POST(self):
                outer.post(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass  # clients of these tests leave in the middle

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.die()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def die(self):
        self.dead = True
        self.server.socket.close()

    dead = False

    @staticmethod
    def send(handler, status, text, kind="application/json"):
        body = text.encode()
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def get(self, handler):
        if self.mode == "not_found":
            self.send(handler, 404, "<html>no</html>", "text/html")
        elif handler.path == "/v1/models":
            self.send(handler, 200, '{"object": "list", "data": [{"id": "scripted"}]}')
        elif handler.path == "/metrics" and self.mode != "no_metrics":
            self.send(handler, 200,
                      f'vllm:spec_decode_num_draft_tokens_total{{model="m"}} {self.drafted}\n'
                      f'vllm:spec_decode_num_accepted_tokens_total{{model="m"}} {self.drafted * 3 / 4}\n',
                      "text/plain")
        else:
            self.send(handler, 404, "{}")

    def post(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        if handler.path == "/tokenize" and self.mode != "no_tokenize":
            return self.send(handler, 200, json.dumps({"count": self.count(prompt)}))
        if handler.path != "/v1/chat/completions":
            return self.send(handler, 404, "{}")
        if self.mode == "overloaded":
            return self.send(handler, 503, '{"error": {"message": "busy"}}')
        if not body.get("stream"):
            usage = {"prompt_tokens": self.count(prompt), "completion_tokens": 1}
            return self.send(handler, 200, json.dumps({"choices": [{}], "usage": usage}))
        self.chat(handler, body, prompt)

    @staticmethod
    def count(prompt):
        return len(prompt.split()) + 5  # a template of five tokens

    def chat(self, handler, body, prompt):
        with self.lock:
            self.prompts.append(prompt)
            cached = self.count(prompt) if prompt in self.known else 0
            self.known.add(prompt)
            if self.die_after is not None and len(self.prompts) > self.die_after:
                self.die()
        if self.dead:
            handler.connection.close()
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.flush()
        if self.mode == "silent":
            time.sleep(60)
            return
        self.read_prompt(prompt)
        left = body["max_tokens"]
        while left > 0 and not self.dead:
            self.chunk(handler, {"choices": [{"index": 0, "delta": {"content": "word "}}]})
            left -= TOKENS_PER_CHUNK
            with self.lock:
                self.drafted += TOKENS_PER_CHUNK
            time.sleep(self.chunk_s * (2 if self.reading else 1))
        usage = {"prompt_tokens": self.count(prompt), "completion_tokens": body["max_tokens"],
                 "prompt_tokens_details": {"cached_tokens": cached}}
        if self.mode != "no_usage":
            self.chunk(handler, {"choices": [], "usage": usage})
        handler.wfile.write(b"data: [DONE]\n\n")
        handler.close_connection = True

    def read_prompt(self, prompt):
        seconds = self.prefill_s_per_token * self.count(prompt)
        if seconds > 0.1:
            with self.lock:
                self.reading += 1
            time.sleep(seconds)
            with self.lock:
                self.reading -= 1

    @staticmethod
    def chunk(handler, value):
        handler.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        handler.wfile.flush()
