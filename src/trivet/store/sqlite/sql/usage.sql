-- name: times_of_each
SELECT i.value AS id, t.value AS times FROM json_each(:ids) AS i JOIN json_each(:times) AS t ON t.key = i.key
