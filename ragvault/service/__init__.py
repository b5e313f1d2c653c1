"""What runs in the background: the watcher, the resident process, and how commands reach them.

    watcher     `ragvault watch`: keeps vaults up to date, and answers searches
    resident    started by a search: answers searches, and ends when nobody has asked for a while

Both are one process per user with the same lock, record and socket; a watcher replaces a resident
process. The constants are what they share with their clients. They are here because a search reads
the record before it imports anything else.
"""

LOCK_FILE = "watch.lock"  # locked by the operating system while the process lives
START_FILE = "start.lock"  # locked by the one client that starts a resident process
RECORD_FILE = "watch.json"  # which process that is, what it watches, where it answers
SOCKET_FILE = "watch.sock"
PROTOCOL = 1  # version of the messages; a client asks no process of another version
