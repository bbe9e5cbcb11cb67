-- name: add_user
INSERT INTO account (name, role, created_at) VALUES (:name, :role, :created_at);

-- name: user
SELECT name, role, created_at FROM account WHERE name = :name;

-- name: users
SELECT name, role, created_at FROM account ORDER BY name;

-- name: has_stored
SELECT EXISTS (SELECT 1 FROM memory WHERE owner = :name) OR EXISTS (SELECT 1 FROM proposal WHERE owner = :name);

-- name: set_role
UPDATE account SET role = :role WHERE name = :name;

-- name: remove_user
DELETE FROM account WHERE name = :name;

-- name: add_key
INSERT INTO api_key (id, account, hash, rights, label, created_at, expires_at)
VALUES (:id, :user, :hash, :rights, :label, :created_at, :expires_at);

-- name: key
SELECT k.id, k.account AS "user", k.hash, k.rights, k.label, k.created_at, k.expires_at, k.revoked_at, a.role
FROM api_key AS k JOIN account AS a ON a.name = k.account WHERE k.id = :id;

-- name: keys
SELECT id, account AS "user", rights, label, created_at, expires_at, revoked_at FROM api_key ORDER BY created_at, id;

-- name: revoke
UPDATE api_key SET revoked_at = :moment WHERE id = :id AND revoked_at IS NULL;
