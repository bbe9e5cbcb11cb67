-- name: vaults
SELECT name, root, options FROM vault ORDER BY name;

-- name: put_vault
INSERT INTO vault (name, root, options) VALUES (:name, :root, :options)
ON CONFLICT ({tenant}name) DO UPDATE SET root = excluded.root, options = excluded.options;

-- name: delete_vault
DELETE FROM vault WHERE name = :name;

-- name: files
SELECT path, size, modified, reader FROM vault_file WHERE vault = :vault;

-- name: put_file
INSERT INTO vault_file (vault, path, size, modified, reader) VALUES (:vault, :path, :size, :modified, :reader)
ON CONFLICT ({tenant}vault, path) DO UPDATE
SET size = excluded.size, modified = excluded.modified, reader = excluded.reader;

-- name: delete_file
DELETE FROM vault_file WHERE vault = :vault AND path = :path;

-- name: parts
SELECT id, path, place, content, said, about FROM vault_part WHERE vault = :vault ORDER BY path, place, id;

-- name: put_part
INSERT INTO vault_part (vault, id, path, place, content, said, about)
VALUES (:vault, :id, :path, :place, :content, :said, :about)
ON CONFLICT ({tenant}vault, id) DO UPDATE
SET path = excluded.path, place = excluded.place, content = excluded.content, said = excluded.said,
    about = excluded.about;

-- name: delete_part
DELETE FROM vault_part WHERE vault = :vault AND id = :id AND path = :path;

-- name: blank_part
-- Of a purged memory only the id remains, so that it stays gone.
UPDATE vault_part SET place = '', content = '', said = '', about = '{}' WHERE id = :id;

-- name: set_lines
UPDATE memory SET source_start_line = :start, source_end_line = :stop WHERE id = :id AND source_uri IS NOT NULL;

-- name: links
SELECT source, kind, target FROM vault_link WHERE vault = :vault;

-- name: put_link
INSERT INTO vault_link (vault, source, kind, target) VALUES (:vault, :source, :kind, :target)
ON CONFLICT ({tenant}vault, source, kind, target) DO NOTHING;

-- name: delete_link
DELETE FROM vault_link WHERE vault = :vault AND source = :source AND kind = :kind AND target = :target;
