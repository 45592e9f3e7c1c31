"""A TCP proxy that stands for the network between a machine and the broker, and can be cut in either direction."""

from __future__ import annotations

import contextlib
import socket
import threading

UP, DOWN = "up", "down"
"""From the machine to the broker, and back."""


class Proxy:
    """Listens on a free port of the loopback address and leads to another one there."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open = {UP: threading.Event(), DOWN: threading.Event()}
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *directions: str) -> None:
        """What is sent from now on is on its way and does not arrive; nobody is told."""
        for direction in directions:
            self._open[direction].clear()

    def heal(self) -> None:
        """The network is whole again. The connections from before are gone, and what was on its way with them."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        for event in self._open.values():
            event.set()

    def stop(self) -> None:
        self._listener.close()
        self.heal()

    def _accept(self) -> None:
        while True:
            try:
                machine, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._pairs.append((machine, broker))
            for direction, source, sink in ((UP, machine, broker), (DOWN, broker, machine)):
                threading.Thread(target=self._carry, args=(direction, source, sink), daemon=True).start()

    def _carry(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._open[direction].wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
