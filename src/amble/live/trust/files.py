"""The names of files in an agent's folder, for those who do not read what is inside."""

CERTIFICATE, KEY, AUTHORITY = "certificate.pem", "key.pem", "authority.pem"
INVITATION = "invitation.json"  # a newcomer's own
