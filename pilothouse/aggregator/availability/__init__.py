"""Whether the server of each APIService can be used: the condition `Available`, and who keeps it true."""
