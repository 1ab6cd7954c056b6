fence <= :fence
