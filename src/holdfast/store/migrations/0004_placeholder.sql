-- The inbox takes this number.
SELECT 1;
