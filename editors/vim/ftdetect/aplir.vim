autocmd BufRead,BufNewFile *.aplir setfiletype aplir
