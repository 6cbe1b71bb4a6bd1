"""storage.k8s.io: classes of storage, CSI drivers and what they know, and attachments of volumes."""
