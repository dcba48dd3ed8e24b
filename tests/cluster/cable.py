"""A cable between two network namespaces that can be bad: two TAP devices and a thread that carries
their frames, late or not at all. Works where the kernel has no netem.
"""
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def open_tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


class Cable:
    """delay_s: one way, of every frame; loss: share of frames that vanish (1 = all)."""

    def __init__(self, names):
        self.delay_s, self.loss = 0.0, 0.0
        self.carried, self.lost = 0, 0
        self.ends = [open_tap(name) for name in names]
        self.random = random.Random(1)
        self.waiting = []  # (due, number, device, frame)
        self.going = True
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def carry(self):
        while self.going:
            until_due = self.waiting[0][0] - time.monotonic() if self.waiting else 0.2
            ready, _, _ = select.select(self.ends, [], [], min(0.2, max(0.0, until_due)))
            for device in ready:
                self.take(device)
            while self.waiting and self.waiting[0][0] <= time.monotonic():
                _, _, device, frame = heapq.heappop(self.waiting)
                try:
                    os.write(device, frame)
                except OSError:
                    pass  # that end is down

    def take(self, device):
        try:
            frame = os.read(device, 65536)
        except OSError:
            return
        if self.random.random() < self.loss:
            self.lost += 1
            return
        self.carried += 1
        other = self.ends[1] if device == self.ends[0] else self.ends[0]
        heapq.heappush(self.waiting, (time.monotonic() + self.delay_s, self.carried, other, frame))

    def stop(self):
        self.going = False
        self.thread.join()
        for device in self.ends:
            os.close(device)
