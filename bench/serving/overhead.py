#!/usr/bin/env python3
"""What the server itself costs, over the scripted engine: CPU per streamed token with many streams,
memory per idle connection, and whether every stream arrived whole.

usage: overhead.py SCRIPTED_SERVER [--streams 200] [--tokens 1000] [--idle 1000] [--rounds 3]
Prints one line per round. The scripted engine lives in the same process, so its share is included.
"""
import argparse
import asyncio
import json
import os
import re
import subprocess

EVENT = re.compile(rb"^data: (\{.*\})$", re.M)


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    return int(open(f"/proc/{pid}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def stream(port, n_tokens):
    """The number of tokens that the stream's usage names and the text that its chunks add up to."""
    body = json.dumps({
        "model": "deepseek-v4-flash", "stream": True, "max_tokens": n_tokens,
        "stream_options": {"include_usage": True}, "reasoning_effort": "none",
        "messages": [{"role": "user", "content": "Produce a numbered list."}]}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    raw = await reader.read()
    writer.close()
    chunks = [json.loads(data) for data in EVENT.findall(raw)]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])
    return chunks[-1]["usage"]["completion_tokens"], text, raw.count(b"data: [DONE]")


async def measure(options, port, pid):
    await stream(port, 10)  # what is allocated once
    before = resident_bytes(pid)
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(options.idle)]
    await asyncio.sleep(1)
    grown = (resident_bytes(pid) - before) / options.idle
    print(f"idle connections {options.idle}  memory per connection {grown / 1024:.1f} KiB")
    for _, writer in idle:
        writer.close()
    expected = "".join(f"{i}. item\n" for i in range(1, 1001))[:options.tokens]
    for _ in range(options.rounds):
        before = cpu_seconds(pid)
        results = await asyncio.gather(*(stream(port, options.tokens) for _ in range(options.streams)))
        used = cpu_seconds(pid) - before
        tokens = sum(result[0] for result in results)
        whole = sum(text == expected and done == 1 for _, text, done in results)
        print(f"streams {options.streams}  whole {whole}  tokens {tokens}  "
              f"CPU per token {1e6 * used / tokens:.1f} us", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    for name, value in (("streams", 200), ("tokens", 1000), ("idle", 1000), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    server = subprocess.Popen([options.server, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = int(server.stdout.readline().split()[-1])
    try:
        asyncio.run(measure(options, port, server.pid))
    finally:
        server.stdin.close()
        server.wait(30)


if __name__ == "__main__":
    main()
