# Every name that is imported from shop.price must be there, and be called for what it is.
for name in $(sed -n 's/^from shop\.price import //p' shop/*.py | tr -d ','); do
    grep -q "^def $name(" shop/price.py || { echo "check: shop/price.py has no $name"; exit 1; }
done
grep -q 'def without_tax(' shop/price.py || { echo "check: net is no name"; exit 1; }
echo "check: passed"
