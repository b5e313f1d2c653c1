"""The vault kept open: a watcher that keeps indexes true, and answers searches while it runs."""
