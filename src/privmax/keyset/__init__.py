"""All keys that enough individuals have, where no one can list the keys."""
