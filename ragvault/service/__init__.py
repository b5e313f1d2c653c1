"""What runs in the background: the watcher, and how commands reach it.

The constants are what the watcher and its clients share. They are here because a search reads
the record before it imports anything else.
"""

LOCK_FILE = "watch.lock"  # locked by the operating system while a watcher lives
RECORD_FILE = "watch.json"  # which process that is, what it watches, where it answers
SOCKET_FILE = "watch.sock"
PROTOCOL = 1  # version of the messages; a client asks no watcher of another version
